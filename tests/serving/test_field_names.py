"""Names of fields that mean the same: a request may use one and its text another, in another language too."""

import tomllib
from importlib.resources import files

import pytest

from zlclient.serving.field_names import names_like
from zlclient.serving.field_values import spoken
from zlclient.serving.responders.stated import stated_value

TICKET = "乘客：韩知夏\n航班：QN6218\n座位：21C\n票价：980元"
CARD = "Dr Emeka Adeyemi\nSilverbrook Labs\nT: +1 555 0142\nF: +1 555 0177"
INVOICE = "Invoice no.: KP-30418\nBill to: Marlow Dental Group\n2 x banner    EUR 420\nTotal         EUR 860"


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("flight_number", TICKET, "QN6218"),
        ("seat", TICKET, "21C"),
        ("passenger", TICKET, "韩知夏"),
        ("gate", TICKET, None),
        ("telephone number", CARD, "+1 555 0142"),
        ("fax", CARD, "+1 555 0177"),
        ("fax", "Tel: +1 555 0142, the office for all of us", None),
        ("rent", "The current price is 940 pounds, up from 900 pounds.", None),
        ("customer", INVOICE, "Marlow Dental Group"),
        ("total", INVOICE, "EUR 860"),
        ("合计", INVOICE, "EUR 860"),
    ],
)
def test_a_field_is_found_under_another_name(field: str, text: str, value: str | None):
    assert stated_value(field, text) == value


def test_a_field_is_its_own_name_first():
    assert stated_value("phone", "Mobile: 0151 2345678\nPhone: 030 123456") == "030 123456"


def test_names_are_symmetric_and_none_is_its_own():
    assert "航班" in names_like("flightNumber")
    assert "flight number" in names_like("航班")
    assert names_like("flavour") == ()
    groups = tomllib.loads((files("zlclient.serving") / "data" / "field_names.toml").read_text("utf-8"))["groups"]
    for group in groups:
        for name in group:
            assert {spoken(other) for other in group} <= {spoken(other) for other in (name, *names_like(name))}
