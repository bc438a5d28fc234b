"""Files that mean harm, or are no BPMN at all: refused by name, quickly, and without touching anything else (S63)."""

from __future__ import annotations

import http.server
import locale
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.bpmn import xml
from engine.bpmn.context import MAX_REPORTED
from engine.bpmn.reader import read_files
from tests.bpmn.models import HEADER, MODELS, around, file_of, model, read

TASK = '<userTask id="x"><documentation>&amp;{}</documentation></userTask>'


def with_doctype(doctype: str, body: str = "") -> bytes:
    return (
        b'<?xml version="1.0"?>\n' + doctype.encode() + b"\n" + around(f'<userTask id="x"><documentation>{body}</documentation></userTask>')
    )


def expansion(levels: int) -> str:
    entities = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10 if level else "ha"}">' for level in range(levels))
    return f"<!DOCTYPE definitions [{entities}]>"


@pytest.fixture
def visited() -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and the paths that anybody asked it for."""
    paths: list[str] = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", paths
    server.shutdown()
    server.server_close()


def test_S63_no_doctype_is_let_in_and_nothing_outside_is_read(tmp_path: Path, visited: tuple[str, list[str]]) -> None:
    address, paths = visited
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret of the server")
    hostile = [
        with_doctype(f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{secret}">]>', "&x;"),
        with_doctype(f'<!DOCTYPE d [<!ENTITY x SYSTEM "{address}/entity">]>', "&x;"),
        with_doctype(f'<!DOCTYPE d SYSTEM "{address}/external.dtd">'),
        with_doctype(f'<!DOCTYPE d PUBLIC "-//X//Y" "{address}/public.dtd">'),
        with_doctype(f'<!DOCTYPE d [<!ENTITY % p SYSTEM "{address}/parameter"> %p;]>'),
        with_doctype("<!DOCTYPE definitions>"),
        with_doctype("<!-- hello -->\n<!DOCTYPE definitions>"),
        with_doctype(expansion(10), "&e9;"),
        b"\xef\xbb\xbf" + with_doctype(expansion(10), "&e9;"),
        with_doctype(expansion(10), "&e9;").decode().replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16"),
    ]
    for data in hostile:
        before = time.perf_counter()
        result = read(data)
        assert time.perf_counter() - before < 1
        (problem,) = result.problems
        assert problem.what == "the file has a DOCTYPE"
        assert problem.line in (2, 3)
        assert "secret of" not in str(result)
    assert paths == []


def test_S63_ten_levels_of_entities_cost_no_memory() -> None:
    data = with_doctype(expansion(10), "&e9;")
    tracemalloc.start()
    read(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


def test_an_entity_without_a_doctype_is_no_entity() -> None:
    assert "not well-formed XML" in read(around(TASK.format("").replace("&amp;", "&x;"))).problems[0].what


def test_an_xinclude_is_a_foreign_element_and_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret of the server")
    include = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{secret}" parse="text"/>'
    result = read(around(f'<userTask id="x"><documentation>{include}</documentation></userTask>'))
    assert result.definitions[0][1].nodes["x"].documentation == ""


def test_a_comment_that_mentions_a_doctype_is_none() -> None:
    assert read(b"<!-- <!DOCTYPE x> -->" + around('<userTask id="x"/>')).problems == ()


def nested(depth: int) -> bytes:
    inside = "".join(f'<subProcess id="s{level}"><startEvent id="i{level}"/>' for level in range(depth))
    return file_of('<startEvent id="s"/>' + inside + "</subProcess>" * depth)


@pytest.mark.parametrize("depth", [100, 300, 30_000])
def test_S63_deep_nesting_is_refused_within_a_second(depth: int) -> None:
    before = time.perf_counter()
    (problem,) = read(nested(depth)).problems
    assert time.perf_counter() - before < 1
    assert problem.what == "the elements are nested too deeply"
    assert problem.why == f"at most {xml.MAX_DEPTH} levels"


def test_what_people_nest_is_read() -> None:
    assert read(nested(40)).problems == ()


def test_S48_an_empty_file_a_zip_and_a_large_file_are_named() -> None:
    files = [
        ("empty.bpmn", b""),
        ("blank.bpmn", b" \n\n"),
        ("zip.bpmn", b"PK\x03\x04rest"),
        ("large.bpmn", b"<" + b"x" * 20_000_000),
        ("text.bpmn", b"hello"),
        ("picture.bpmn", b"\x89PNG\r\n\x1a\n\0\0\0"),
        ("half.bpmn", around('<userTask id="x"/>')[:-30]),
        ("other.bpmn", b'<bpmn:definitions xmlns:bpmn="urn:other"/>'),
        ("good.bpmn", around('<userTask id="x"/>')),
    ]
    before = time.perf_counter()
    result = read_files(files)
    assert time.perf_counter() - before < 1
    said = {problem.file: f"{problem.what}; {problem.why}" for problem in result.problems}
    assert said["empty.bpmn"] == said["blank.bpmn"] == "the file is empty; a BPMN 2.0 file in XML"
    assert "a ZIP archive" in said["zip.bpmn"]
    assert said["large.bpmn"] == "the file has 20,000,001 bytes; at most 5,000,000 bytes"
    assert "not well-formed XML" in said["text.bpmn"]
    assert "byte 1 is not UTF-8" in said["picture.bpmn"]
    assert "not well-formed XML" in said["half.bpmn"]
    assert "the root element is definitions (urn:other)" in said["other.bpmn"]
    assert len(said) == len(result.problems) == len(files) - 1


def test_S38_a_wrongly_declared_encoding_is_refused_and_never_stored_with_marks() -> None:
    text = '<?xml version="1.0" encoding="{}"?>\n' + around('<userTask id="x" name="Prüfung"/>').decode()
    cases = [
        (text.format("UTF-8").encode("iso-8859-1"), "is not UTF-8, which the file declares", 5),
        (text.split("\n", 1)[1].encode("iso-8859-1"), "is not UTF-8, which the file must be without a declaration", 4),
        (text.format("UTF-16").encode(), "declares the encoding UTF-16 but is written in single bytes", 1),
        (text.format("UTF-8").encode("utf-16"), "declares the encoding UTF-8 but is written in utf-16-le", 1),
        (text.format("ISO-8859-1").encode("utf-8-sig"), "declares the encoding ISO-8859-1 but is written in utf-8", 1),
        (text.format("US-ASCII").encode(), "is not ASCII, which the file declares", 5),
        (text.format("UTF-7").encode(), "declares the encoding UTF-7", 1),
        (text.format("UTF-16").encode("utf-16")[:-1], "is not UTF-16", 7),
    ]
    for data, part, line in cases:
        (problem,) = read(data).problems
        assert part in problem.what
        assert problem.line == line, part


@pytest.mark.parametrize("place", ["C", "C.UTF-8"])
def test_messages_do_not_depend_on_the_locale(place: str) -> None:
    data = [b"<a><b></a>", with_doctype("<!DOCTYPE d>"), b'<?xml version="1.0" encoding="UTF-8"?><a>\xff</a>', file_of("<task id='x'/>")]
    expected = [read(each).problems for each in data]
    earlier = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, place)
        assert [read(each).problems for each in data] == expected
    finally:
        locale.setlocale(locale.LC_ALL, earlier)


MANY = {
    "gateways": "".join(f'<exclusiveGateway id="g{n}"/>' for n in range(9_000)),
    "flows": "".join(f'<sequenceFlow id="f{n}" sourceRef="s" targetRef="s"/>' for n in range(9_000)),
    "boundaries": "".join(f'<boundaryEvent id="b{n}" attachedToRef="gone"><errorEventDefinition/></boundaryEvent>' for n in range(9_000)),
    "subprocesses": "".join(f'<subProcess id="p{n}"><startEvent id="i{n}"/></subProcess>' for n in range(4_900)),
    "nodes without id": "<userTask/>" * 90_000,
    "elements": "<a/>" * 1_000_000,
    "too many nodes": "".join(f'<userTask id="t{n}"/>' for n in range(90_000)),
    "attributes": '<userTask id="t" ' + " ".join(f'other:a{n}="1"' for n in range(50_000)) + "/>",
    "candidates": f'<userTask id="t" camunda:candidateUsers="{"a," * 200_000}"/>',
    "brackets": f'<userTask id="t" camunda:assignee="${{{"(" * 100_000}"/>',
    "names": f'<userTask id="t" name="{"n" * 4_000_000}"/>',
}


@pytest.mark.parametrize("what", MANY)
def test_S63_a_file_that_is_large_on_purpose_costs_little(what: str) -> None:
    data = file_of('<startEvent id="s"/>' + MANY[what])
    before = time.process_time()
    result = read(data)
    assert time.process_time() - before < 3  # of a slow core; a web worker answers others meanwhile
    assert len(result.problems) <= MAX_REPORTED
    assert len(result.warnings) <= MAX_REPORTED


def test_what_is_not_listed_is_counted_and_not_dropped() -> None:
    data = file_of('<startEvent id="s"/>' + "".join(f'<task id="t{n}" nobodys="1"/>' for n in range(1200)))
    *listed, last = read(data).warnings
    assert len(listed) == MAX_REPORTED - 1
    assert last.what == "1,401 more warnings are not listed", "each task is reached by no flow, and has an attribute that is not read"


# ---- by chance

SOURCES = [path.read_bytes() for path in sorted(MODELS.glob("*.bpmn"))]


@given(st.data())
@settings(max_examples=120, deadline=None)
def test_a_model_changed_by_chance_is_read_or_refused(data: st.DataObject) -> None:
    """Lines dropped, doubled and swapped, attributes renamed, bytes changed: problems at most, and each says where."""
    lines = data.draw(st.sampled_from(SOURCES)).split(b"\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        match data.draw(st.integers(0, 4)):
            case 0:
                del lines[at]
                lines = lines or [b""]
            case 1:
                lines.insert(at, lines[at])
            case 2:
                other = data.draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = lines[at].replace(b'="', b'x="', 1)
            case _:
                lines[at] = lines[at].replace(b"Ref=", b"Rex=").replace(b"Task", b"Gateway", 1)
    result = read(b"\n".join(lines))
    assert result.problems or result.definitions
    for problem in result.problems:
        assert problem.what and problem.why and problem.file == "model.bpmn"


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    assert read(data).problems
    assert read(HEADER.encode() + data).problems


def test_reading_twice_gives_the_same() -> None:
    assert read(model("every_element")) == read(model("every_element"))
    assert read(model("s48_faults")) == read(model("s48_faults"))


def test_S63_a_large_event_definition_that_many_events_refer_to_is_refused() -> None:
    """Read where it is referred to, a few kilobytes would be gigabytes."""
    text = f"<documentation>{'x' * 50_000}</documentation><timeDuration>PT1H</timeDuration>"
    large = f'<timerEventDefinition id="t">{text}</timerEventDefinition>'
    event = '<intermediateCatchEvent id="c{}"><eventDefinitionRef>t</eventDefinitionRef></intermediateCatchEvent>'
    data = file_of('<startEvent id="s"/>' + "".join(event.format(number) for number in range(2_000)), root=large)
    tracemalloc.start()
    began = time.monotonic()
    problems = read(data).problems
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "event definitions that events refer to are too large" in problems[0].what
    assert problems[0].element_id == "c39"
    assert (time.monotonic() - began < 10, most < 100_000_000) == (True, True)


def test_an_event_of_very_many_definitions_is_refused_before_they_are_read() -> None:
    definitions = '<signalEventDefinition signalRef="g"/>' * 3_000
    data = "<dataInput/>" * 3_000
    begun = time.monotonic()
    found = read_files([("m", around(f'<endEvent id="x">{data}{definitions}</endEvent>'))]).problems
    assert ("x", "at most 100") in [(each.element_id, each.why) for each in found]
    assert time.monotonic() - begun < 10
