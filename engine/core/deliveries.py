"""What goes into the outbox: message throws, and service tasks bound to `http.deliver` or `mail.send`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from engine.bpmn.definition import MessageConfig, Node, ServiceTaskConfig
from engine.core.effects import NewDelivery
from engine.core.reading import as_text, inputs_of, plain, retries_of_work, text_of
from engine.core.run import CannotGoOn, Run
from engine.core.state import Scope, Token
from engine.core.throws import throw_message
from engine.destinations import address_of_mail, address_of_url
from engine.expressions import Expression

ATTEMPTS = 8  # of a delivery whose model says nothing: then its destination does
LONGEST_KEY = 200  # characters of an ordering key


def send(run: Run, token: Token, node: Node, config: MessageConfig) -> None:
    """A thrown message: to its destination by the outbox, or to our own processes."""
    if config.destination is None:
        throw_message(run, token, node, config)
    else:
        _message_delivery(run, token, node, config)


def _message_delivery(run: Run, token: Token, node: Node, config: MessageConfig) -> None:
    """Its body, or all variables, to the message's destination."""
    names = run.names(token.scope)
    url = text_of(config.destination, names)
    if not url and config.destination_name is None:
        raise CannotGoOn("expression", f"{node.name or node.id}: expected a destination for its message, found none")
    body = _variables(token.scope) if config.body is None else plain(config.body.evaluate(names), "the message's body")
    headers = {"X-Message-Name": text_of(config.name, names)}
    request = {"method": config.method, "url": url, "headers": headers, "body": body}
    _deliver(run, token, node, config, _Sent("http", url, request, address_of_url(url)))


def task_delivery(run: Run, token: Token, node: Node, config: ServiceTaskConfig) -> None:
    """http.deliver: inputs url (or destination), method, headers, body. mail.send: inputs to, subject, text."""
    inputs = inputs_of(run, token, config.inputs)
    if config.topic == "mail.send":
        to = as_text(_required(node, inputs, "to"))
        request: dict[str, Any] = {"to": to, "subject": as_text(inputs.get("subject")), "text": as_text(inputs.get("text"))}
        sent = _Sent("mail", to, request, address_of_mail(to))
    else:
        named = config.destination_name is not None  # then its own address will do
        given = inputs.get("url") or inputs.get("destination") or "" if named else _required(node, inputs, "url", "destination")
        destination = as_text(given)
        headers = plain(inputs.get("headers"), "headers") or {}
        if not isinstance(headers, dict):
            raise CannotGoOn("expression", f"{node.name or node.id}: expected headers as an object, found {headers!r}")
        body = plain(inputs["body"], "body") if "body" in inputs else _variables(token.scope)
        method = as_text(inputs.get("method")).upper() or "POST"
        request = {"method": method, "url": destination, "headers": {k: as_text(v) for k, v in headers.items()}, "body": body}
        sent = _Sent("http", destination, request, address_of_url(destination))
    _deliver(run, token, node, config, sent)


def _required(node: Node, inputs: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        if inputs.get(name) not in (None, ""):
            return inputs[name]
    raise CannotGoOn("expression", f"{node.name or node.id}: expected a value for its input {names[0]}, found none")


def _variables(scope: Scope) -> dict[str, Any]:
    """Every variable that is visible, by name; the inner one hides the outer one."""
    return {name: variable.value for name, variable in scope.visible().items()}


class _Sent(NamedTuple):
    kind: str
    destination: str
    request: dict[str, Any]
    address: str


def _deliver(run: Run, token: Token, node: Node, config: ServiceTaskConfig | MessageConfig, sent: _Sent) -> None:
    retry, attempts = retries_of_work(run, token, config.retry, config.max_attempts)
    if config.destination_name is not None:
        sent.request["destination"] = config.destination_name
    delivery = NewDelivery(
        run.new_id(),
        sent.kind,
        sent.destination or config.destination_name or "",
        node.id,
        sent.request,
        max_attempts=None if config.retry is None and config.max_attempts == ATTEMPTS else attempts,
        retry=retry,
        address=sent.address,
        line=_line(run, token, node, config.ordering_key),
    )
    if token.scope.instance is not run.instance:
        delivery.instance_id = token.scope.instance.id
    run.effects.deliveries.append(delivery)
    data = {"item_id": str(delivery.id), "kind": delivery.kind, "destination": delivery.destination}
    run.record(token.scope, "delivery_created", node.id, data)


def _line(run: Run, token: Token, node: Node, key: Expression | None) -> str | None:
    """Its ordering key. What was meant to go in order does not go in none: no key is an incident."""
    if key is None:
        return None
    found = as_text(key.evaluate(run.names(token.scope)))
    if not found or len(found) > LONGEST_KEY:
        what = f"an ordering key of 1 to {LONGEST_KEY} characters"
        raise CannotGoOn("expression", f"{node.name or node.id}: expected {what}, found {len(found)}")
    return found
