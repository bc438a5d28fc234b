"""The version tag of a process stands beside its version; what is deployed already gets it from its model."""

from alembic import op
from lxml import etree

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

BPMN = "http://www.omg.org/spec/BPMN/20100524/MODEL"
ZEEBE = "http://camunda.org/schema/zeebe/1.0"


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute("ALTER TABLE process_definition ADD COLUMN version_tag text")
    cursor.execute("SELECT id, key, xml FROM process_definition WHERE position('versionTag'::bytea IN xml) > 0")
    for definition_id, key, xml in cursor.fetchall():
        tag = tag_of(bytes(xml), key)
        if tag:
            cursor.execute("UPDATE process_definition SET version_tag = %s WHERE id = %s", (tag, definition_id))


def tag_of(xml: bytes, key: str) -> str | None:
    """The tag that a vendor's attribute of the process has, or zeebe:versionTag in it."""
    root = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    for process in root.iter(f"{{{BPMN}}}process"):
        if process.get("id") == key:
            found = [value for name, value in process.attrib.items() if str(name).endswith("}versionTag")]
            found += [tag.get("value", "") for tag in process.iterfind(f"{{{BPMN}}}extensionElements/{{{ZEEBE}}}versionTag")]
            return next((str(tag).strip() for tag in found if str(tag).strip()), None)
    return None
