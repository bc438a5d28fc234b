"""What each package sends for one task, call by call, as it was recorded: for `make test`, which has neither node nor a registry.

Bodies and headers are those of the drivers' runs, written down in short. `{task}`, `{instance}`, `{leaf}`, `{worker}` and
`{topic}` stand for what the answers before had.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Call:
    """`body` None: none is sent. `takes`: the answer is one task, or a list with it: what it shows is checked and kept."""

    path: str
    body: str | None = None
    method: str = "POST"
    status: int = 204
    takes: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """One package. `ways`: what it does to one task of a case, until that has ended."""

    package: str
    auth: str  # basic | bearer
    headers: dict[str, str]
    typed_without_body: bool  # whether it names a content type where it sends no body, or none that is read
    ways: dict[str, tuple[Call, ...]] = field(default_factory=dict)


def _ways(
    fetch: Call,
    *,
    complete: str,
    failure: str,
    error: str,
    extend: str | None = None,
    unlock: Call | None = None,
    before: tuple[Call, ...] = (),
) -> dict[str, tuple[Call, ...]]:
    """`before`: what it reads when it has a task. In `failure`, `{retries}` is what it gives."""
    done = Call("/external-task/{task}/complete", complete)
    taken = (fetch, *before)

    def failing(retries: int) -> Call:
        return Call("/external-task/{task}/failure", failure.replace("{retries}", str(retries)))

    ways = {
        "complete": (*taken, done),
        "failure": (*taken, failing(2), *taken, failing(1), *taken, done),
        "error": (*taken, Call("/external-task/{task}/bpmnError", error)),
    }
    if extend is not None:
        ways["extend"] = (*taken, Call("/external-task/{task}/extendLock", extend), done)
    if unlock is not None:
        ways["unlock"] = (*taken, unlock, *taken, done)
    return ways


def _fetch(body: str) -> Call:
    return Call("/external-task/fetchAndLock", body, status=200, takes=True)


_JS_VALUE = '"said":{"type":"string","value":"N\\u00ba 7 – 人!","valueInfo":{}},"half":{"type":"double","value":3.5}'
JS = Recorded(
    "camunda-external-task-client-js 3.1.0",
    "basic",
    {"User-Agent": "got (https://github.com/sindresorhus/got)", "Accept-Encoding": "gzip, deflate, br"},
    typed_without_body=False,
    ways=_ways(
        _fetch(
            '{"maxTasks":10,"usePriority":true,"asyncResponseTimeout":20000,"topics":[{"topicName":"{topic}","lockDuration":60000}],'
            '"workerId":"{worker}"}'
        ),
        complete=(
            '{"workerId":"{worker}","variables":{"square":{"type":"integer","value":49,"valueInfo":{}},' + _JS_VALUE + ","
            '"not_flag":{"type":"boolean","value":false,"valueInfo":{}},'
            '"back":{"type":"json","value":"{\\"items\\":[1,2.5,null]}","valueInfo":{}},'
            '"at_back":{"type":"date","value":"2026-11-30T10:00:00.000+0000","valueInfo":{}}}}'
        ),
        failure='{"errorMessage":"no paper","errorDetails":"none","retries":{retries},"retryTimeout":0,"workerId":"{worker}"}',
        error='{"errorCode":"LATE","workerId":"{worker}","errorMessage":"late","variables":{"why":{"type":"string","value":"x","valueInfo":{}}}}',
        extend='{"newDuration":60000,"workerId":"{worker}"}',
        unlock=Call("/external-task/{task}/unlock"),
    ),
)

_PYTHON_TOPIC = (
    '{"topicName": "{topic}", "lockDuration": 60000, "processVariables": {}, "includeExtensionProperties": true, '
    '"deserializeValues": true, "variables": null}'
)
_PYTHON = _ways(
    _fetch(
        '{"workerId": "{worker}", "maxTasks": 5, "topics": [' + _PYTHON_TOPIC + '], "asyncResponseTimeout": 20000, "usePriority": false, '
        '"sorting": null}'
    ),
    complete=(
        '{"workerId": "{worker}", "variables": {"square": {"value": 49}, "said": {"value": "N\\u00ba 7 \\u2013 \\u4eba!"}, '
        '"half": {"value": 3.5}, "not_flag": {"value": false}, "back": {"value": {"items": [1, 2.5, null]}}}, "localVariables": {}}'
    ),
    failure='{"workerId": "{worker}", "errorMessage": "no paper", "retries": {retries}, "retryTimeout": 0, "errorDetails": "none"}',
    error='{"workerId": "{worker}", "errorCode": "LATE", "errorMessage": "late", "variables": {"why": {"value": "x"}}}',
)
PYTHON = Recorded(
    "camunda-external-task-client-python3 4.5.0",
    "bearer",
    {"User-Agent": "python-requests/2.34.2", "Accept-Encoding": "gzip, deflate", "Accept": "*/*"},
    typed_without_body=True,
    ways=_PYTHON,
)
OPERATON = Recorded(
    "operaton-external-task-client-python3 1.0.4",
    "basic",
    {"User-Agent": "python-httpx/0.28.1", "Accept-Encoding": "gzip, deflate", "Accept": "*/*"},
    typed_without_body=True,
    ways=_PYTHON,
)

_UNTYPED = '"type": null, "valueInfo": null'
PYCAMUNDA = Recorded(
    "pycamunda 0.6.1",
    "basic",
    {"User-Agent": "python-requests/2.34.2", "Accept-Encoding": "gzip, deflate", "Accept": "*/*"},
    typed_without_body=True,
    ways={
        **(
            _all := _ways(
                _fetch(
                    '{"workerId": "{worker}", "maxTasks": 10, "usePriority": false, "asyncResponseTimeout": 20000, "topics": '
                    '[{"topicName": "{topic}", "lockDuration": 60000, "deserializeValues": false}]}'
                ),
                complete=(
                    '{"workerId": "{worker}", "variables": {"square": {"value": 49, ' + _UNTYPED + "}, "
                    '"said": {"value": "N\\u00ba 7 \\u2013 \\u4eba!", ' + _UNTYPED + '}, "half": {"value": 3.5, ' + _UNTYPED + "}, "
                    '"not_flag": {"value": false, ' + _UNTYPED + "}, "
                    '"back": {"value": "{\\"items\\":[1,2.5,null]}", "type": "Json", "valueInfo": null}}, "localVariables": {}}'
                ),
                failure=(
                    '{"workerId": "{worker}", "errorMessage": "no paper", "errorDetails": "none", "retries": {retries}, "retryTimeout": 0}'
                ),
                error=(
                    '{"workerId": "{worker}", "errorCode": "LATE", "errorMessage": "late", "variables": {"why": {"value": "x", '
                    + _UNTYPED
                    + "}}}"
                ),
                extend='{"newDuration": 60000, "workerId": "{worker}"}',
                unlock=Call("/external-task/{task}/unlock", "{}"),
            )
        ),
        "incident": (
            _all["complete"][0],
            Call(
                "/external-task/{task}/failure",
                '{"workerId": "{worker}", "errorMessage": "no paper", "errorDetails": "none", "retries": 0, "retryTimeout": 0}',
            ),
            Call("/external-task/{task}", "{}", method="GET", status=200, takes=True),
            Call("/external-task/{task}/errorDetails", method="GET", status=200),
            Call("/external-task?externalTaskId={task}&noRetriesLeft=true", "{}", method="GET", status=200, takes=True),
            Call("/external-task/count?topicName={topic}&noRetriesLeft=True", method="GET", status=200),
            Call("/external-task/{task}/priority", '{"priority": 7}', method="PUT"),
            Call("/external-task/{task}/retries", '{"retries": 1}', method="PUT"),
            *_all["complete"],
        ),
    },
)

_LOOK = Call(
    "/external-task",
    '{"withRetriesLeft": 1, "notLocked": 1, "sorting": [{"sortBy": "taskPriority", "sortOrder": "desc"}]}',
    status=200,
    takes=True,
)
FASTBPMN = Recorded(
    "fastbpmn 0.5.0",
    "basic",
    {"User-Agent": "python-httpx/0.28.1", "Accept-Encoding": "gzip, deflate", "Accept": "application/json"},
    typed_without_body=False,
    ways=_ways(
        _LOOK,
        complete=(
            '{"workerId": "{worker}", "variables": {"square": {"value": 49, "type": "Long"}, '
            '"said": {"value": "N\\u00ba 7 \\u2013 \\u4eba!", "type": "String"}, "half": {"value": 3.5, "type": "Double"}, '
            '"not_flag": {"value": false, "type": "Boolean"}, "back": {"value": "{\\"items\\":[1,2.5,null]}", "type": "Json"}}}'
        ),
        failure='{"workerId": "{worker}", "errorMessage": "no paper", "errorDetails": "none", "retries": {retries}, "retryTimeout": 1}',
        error=(
            '{"workerId": "{worker}", "errorCode": "LATE", "errorMessage": "late", "variables": {"why": {"value": "x", "type": "String"}}}'
        ),
        extend='{"workerId": "{worker}", "newDuration": 60000}',
        before=(
            Call("/history/process-instance/{instance}", method="GET", status=200),
            Call("/external-task/{task}/lock", '{"workerId": "{worker}", "lockDuration": 60000}'),
            Call("/process-instance/{instance}/activity-instances", method="GET", status=200),
            Call("/execution/{instance}/localVariables?deserializeValues=false", method="GET", status=200),
            Call("/execution/{leaf}/localVariables?deserializeValues=false", method="GET", status=200),
        ),
    ),
)

RECORDED = (JS, PYTHON, OPERATON, PYCAMUNDA, FASTBPMN)
