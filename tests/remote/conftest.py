"""baton_client against a real server over a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
import pytest

from baton_client import Client
from tests.browser.conftest import Site
from tests.browser.conftest import site as site
from tests.web.operations import api_key

T = TypeVar("T")
PRINTING = b"""<?xml version="1.0" encoding="UTF-8"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:camunda="http://camunda.org/schema/1.0/bpmn"
             id="d" targetNamespace="urn:baton:tests">
  <error id="jam" errorCode="JAM"/>
  <process id="printing" name="Printing" isExecutable="true">
    <startEvent id="start"/>
    <sequenceFlow id="f1" sourceRef="start" targetRef="print"/>
    <serviceTask id="print" name="Print the label" camunda:type="external" camunda:topic="print"/>
    <boundaryEvent id="jammed" attachedToRef="print"><errorEventDefinition errorRef="jam"/></boundaryEvent>
    <sequenceFlow id="f2" sourceRef="print" targetRef="check"/>
    <sequenceFlow id="f3" sourceRef="jammed" targetRef="repair"/>
    <userTask id="check" name="Check the label" camunda:candidateGroups="clerks"/>
    <userTask id="repair" name="Repair the printer" camunda:candidateGroups="clerks"/>
    <sequenceFlow id="f4" sourceRef="check" targetRef="end"/>
    <sequenceFlow id="f5" sourceRef="repair" targetRef="end"/>
    <endEvent id="end"/>
  </process>
</definitions>
"""


def in_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a thread of its own: Playwright keeps a loop in that of the tests, once a browser was started."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result(120)


@pytest.fixture
def olga(site: Site, committed_db: psycopg.Connection[Any]) -> Iterator[Client]:
    """An operator's client, with the process deployed."""
    with Client(site.url, api_key(committed_db, "olga")) as client:
        client.deploy(("printing.bpmn", PRINTING))
        yield client


@pytest.fixture
def ada(site: Site, committed_db: psycopg.Connection[Any]) -> Iterator[Client]:
    with Client(site.url, api_key(committed_db, "ada")) as client:
        yield client
