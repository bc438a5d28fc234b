"""What goes into the outbox: message throws, and service tasks bound to `http.deliver` or `mail.send`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.bpmn.definition import MessageConfig, Node, ServiceTaskConfig
from engine.core.effects import NewDelivery
from engine.core.reading import as_text, inputs_of, plain, retries_of_work, text_of
from engine.core.run import CannotGoOn, Run
from engine.core.state import Scope, Token
from engine.core.throws import throw_message


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
    if not url:
        raise CannotGoOn("expression", f"{node.name or node.id}: expected a destination for its message, found none")
    body = _variables(token.scope) if config.body is None else plain(config.body.evaluate(names), "the message's body")
    headers = {"X-Message-Name": text_of(config.name, names)}
    request = {"method": config.method, "url": url, "headers": headers, "body": body}
    retry, attempts = retries_of_work(run, token, config.retry, config.max_attempts)
    _deliver(run, token, node, NewDelivery(run.new_id(), "http", url, node.id, request, attempts, retry))


def task_delivery(run: Run, token: Token, node: Node, config: ServiceTaskConfig) -> None:
    """http.deliver: inputs url (or destination), method, headers, body. mail.send: inputs to, subject, text."""
    inputs = inputs_of(run, token, config.inputs)
    if config.topic == "mail.send":
        to = as_text(_required(node, inputs, "to"))
        request: dict[str, Any] = {"to": to, "subject": as_text(inputs.get("subject")), "text": as_text(inputs.get("text"))}
        kind, destination = "mail", to
    else:
        destination = as_text(_required(node, inputs, "url", "destination"))
        headers = plain(inputs.get("headers"), "headers") or {}
        if not isinstance(headers, dict):
            raise CannotGoOn("expression", f"{node.name or node.id}: expected headers as an object, found {headers!r}")
        body = plain(inputs["body"], "body") if "body" in inputs else _variables(token.scope)
        method = as_text(inputs.get("method")).upper() or "POST"
        request = {"method": method, "url": destination, "headers": {k: as_text(v) for k, v in headers.items()}, "body": body}
        kind = "http"
    retry, attempts = retries_of_work(run, token, config.retry, config.max_attempts)
    _deliver(run, token, node, NewDelivery(run.new_id(), kind, destination, node.id, request, attempts, retry))


def _required(node: Node, inputs: Mapping[str, Any], *names: str) -> Any:
    for name in names:
        if inputs.get(name) not in (None, ""):
            return inputs[name]
    raise CannotGoOn("expression", f"{node.name or node.id}: expected a value for its input {names[0]}, found none")


def _variables(scope: Scope) -> dict[str, Any]:
    """Every variable that is visible, by name; the inner one hides the outer one."""
    return {name: variable.value for name, variable in scope.visible().items()}


def _deliver(run: Run, token: Token, node: Node, delivery: NewDelivery) -> None:
    if token.scope.instance is not run.instance:
        delivery.instance_id = token.scope.instance.id
    run.effects.deliveries.append(delivery)
    data = {"item_id": str(delivery.id), "kind": delivery.kind, "destination": delivery.destination}
    run.record(token.scope, "delivery_created", node.id, data)
