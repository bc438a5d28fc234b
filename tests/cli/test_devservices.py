"""The mail sink and the sample service of `baton up`."""

from __future__ import annotations

import smtplib
import socket
import threading
from collections.abc import Iterator
from email.message import EmailMessage

import httpx
import pytest

from cli import mailsink
from cli.devservices import DevServer, SampleService
from cli.mailsink import MailBox, MailSink


@pytest.fixture
def mails(tmp_path) -> MailBox:
    return MailBox(tmp_path / "mails")


@pytest.fixture
def smtp(mails) -> Iterator[tuple[str, int]]:
    with MailSink(("127.0.0.1", 0), mails) as sink:
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        yield sink.server_address
        sink.shutdown()


@pytest.fixture
def service() -> SampleService:
    made = SampleService(seed=1)
    made.behaviour = made.behaviour.changed({"delay_seconds": 0})
    return made


@pytest.fixture
def http(service, mails) -> Iterator[httpx.Client]:
    with DevServer(("127.0.0.1", 0), service, mails) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with httpx.Client(base_url=f"http://127.0.0.1:{server.server_address[1]}", trust_env=False) as client:
            yield client
        server.shutdown()


def a_mail(text: str = "Hello\n.hidden dot\n", subject: str = "Grüße") -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "baton@example.test", "ada@example.test", subject
    mail.set_content(text)
    return mail


def test_a_mail_arrives_as_it_was_sent_and_is_shown_newest_first(smtp, http):
    with smtplib.SMTP(*smtp) as server:
        server.send_message(a_mail(subject="first"))
        server.send_message(a_mail())
    newest, first = http.get("/mails").json()["items"]
    assert (newest["subject"], first["subject"]) == ("Grüße", "first")
    whole = http.get(f"/mails/{newest['id']}").json()
    assert (whole["to"], whole["text"]) == ("ada@example.test", "Hello\n.hidden dot\n")


def test_mails_are_there_after_a_restart_and_old_ones_make_room(smtp, mails, monkeypatch):
    monkeypatch.setattr(mailsink, "KEPT", 3)
    with smtplib.SMTP(*smtp) as server:
        for number in range(5):
            server.send_message(a_mail(subject=str(number)))
    again = MailBox(mails.folder)
    assert [mail.summary()["subject"] for mail in again.newest()] == ["4", "3", "2"]


def test_commands_out_of_order_and_too_long_a_mail_are_refused(smtp, mails, monkeypatch):
    monkeypatch.setattr(mailsink, "MAX_MAIL", 1000)
    with smtplib.SMTP(*smtp) as server:
        assert server.docmd("RCPT", "TO:<a@example.test>")[0] == 503
        assert server.docmd("DATA")[0] == 503
        assert server.docmd("EXPN", "all")[0] == 502
        server.ehlo()
        server.esmtp_features.clear()  # else the client itself refuses, by the size that was announced
        with pytest.raises(smtplib.SMTPDataError) as refused:
            server.send_message(a_mail("x" * 70 + "\n" + "y\n" * 1000))
        assert refused.value.smtp_code == 552
    assert mails.newest() == []


def test_a_sender_that_goes_away_in_the_middle_leaves_no_mail(smtp, mails):
    with socket.create_connection(smtp) as sender, sender.makefile("rwb", buffering=0) as line:
        for command in ("", "HELO x", "MAIL FROM:<a@b>", "RCPT TO:<c@d>", "DATA"):
            if command:
                line.write(f"{command}\r\n".encode())
            line.readline()
        line.write(b"Subject: half\r\n\r\nhalf a li")
    with smtplib.SMTP(*smtp) as server:
        server.send_message(a_mail(subject="whole"))
    assert [mail.summary()["subject"] for mail in mails.newest()] == ["whole"]


@pytest.mark.parametrize("mail_id", ["nothing", "..%2F..%2Fpasswd", "1234567890123-1"])
def test_a_mail_that_is_not_there_is_not_found(http, mail_id):
    assert http.get(f"/mails/{mail_id}").status_code == 404


def test_R7_a_repeated_key_gets_the_first_answer_and_moves_nothing(http):
    first = http.post("/ledger", json={"amount": 5}, headers={"Idempotency-Key": "k1"})
    again = http.post("/ledger", json={"amount": 5}, headers={"Idempotency-Key": "k1"})
    other = http.post("/ledger", json={"amount": 5}, headers={"Idempotency-Key": "k2"})
    assert first.json() == again.json() != other.json()
    assert [call["repeated"] for call in http.get("/calls").json()["items"]] == [False, True, False]


def test_a_failed_call_was_not_done_and_may_succeed_under_the_same_key(http):
    http.put("/settings", json={"failure_percent": 100})
    assert http.post("/warehouse", json={}, headers={"Idempotency-Key": "k"}).status_code == 503
    http.put("/settings", json={"failure_percent": 0})
    answer = http.post("/warehouse", json={}, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 200
    assert not http.get("/calls").json()["items"][0]["repeated"]


def test_the_bank_has_a_limit_which_leaves_an_invoice_for_an_operator(http):
    assert http.post("/bank/advice", json={"amount": 5000}).status_code == 200
    answer = http.post("/bank/advice", json={"amount": 5001})
    assert (answer.status_code, answer.json()["error"]) == (422, "over_the_limit")


@pytest.mark.parametrize("wrong", [{"delay_seconds": -1}, {"delay_seconds": 61}, {"failure_percent": 101}, {"delay_seconds": "soon"}])
def test_settings_out_of_range_are_refused_and_change_nothing(http, wrong):
    before = http.get("/settings").json()
    assert http.put("/settings", json=wrong).status_code == 422
    assert http.get("/settings").json() == before


def test_a_page_of_another_site_cannot_change_the_settings(http):
    """Without asking first, a page may only send the content types of forms."""
    answer = http.request("PUT", "/settings", content='{"failure_percent": 100}', headers={"Content-Type": "text/plain"})
    assert answer.status_code == 404
    assert http.get("/settings").json()["failure_percent"] == 0
