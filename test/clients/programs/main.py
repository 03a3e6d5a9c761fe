"""The typical tasks, with the client that openapi-python-client generates."""

import os
import re
import sys
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from llmp_client import AuthenticatedClient
from llmp_client.api.audit import list_audit
from llmp_client.api.cache import purge_cache
from llmp_client.api.projects import create_project
from llmp_client.api.tokens import create_token, list_tokens, read_token, revoke_token, update_token
from llmp_client.api.usage import read_usage
from llmp_client.models import (
    CachePurge,
    CachePurged,
    ListAuditAction,
    ListTokensSort,
    Problem,
    ProblemCode,
    ProjectChanged,
    ProjectCreate,
    Token,
    TokenCreate,
    TokenCreated,
    TokenPatch,
    TokenState,
)
from llmp_client.types import UNSET

label = sys.argv[1]
client = AuthenticatedClient(base_url=os.environ["LLMP_URL"], token=os.environ["LLMP_TOKEN"])
now = datetime.now(timezone(timedelta(hours=5, minutes=30)))
hour = timedelta(hours=1)

project = create_project.sync(
    client=client,
    body=ProjectCreate(name=label, api_key="sk-example-key-of-a-provider"),
    x_audit_reason="a%20test",
)
assert isinstance(project, ProjectChanged), project

tokens = []
for name in ["one", "two", "three"]:
    body = TokenCreate(project_id=project.id, duration_hours=2, max_requests=10, name=name)
    created = create_token.sync(client=client, body=body)
    assert isinstance(created, TokenCreated), created
    assert created.token.startswith("sk-wt-")
    tokens.append(created)

listed = []
cursor = None
pages = 0
while True:
    page = list_tokens.sync_detailed(
        client=client,
        limit=2,
        cursor=UNSET if cursor is None else cursor,
        project_id=str(project.id),
        active_only=True,
        sort=ListTokensSort.CREATED_AT,
        expires_after=(now + hour).isoformat(),
        expires_before="3h",
    )
    assert isinstance(page.parsed, list), page
    listed += [token.id for token in page.parsed]
    pages += 1
    link = re.fullmatch(r'<([^>]+)>; rel="next"', page.headers.get("link", ""))
    if link is None:
        break
    cursor = parse_qs(urlsplit(link.group(1)).query)["cursor"][0]
assert pages == 2 and sorted(listed) == sorted(token.id for token in tokens), listed
none = list_tokens.sync(client=client, project_id=str(project.id), expires_before=(now + hour).isoformat())
assert none == [], none

id = tokens[0].id
shown = read_token.sync(id, client=client)
assert isinstance(shown, Token) and shown.name == "one" and shown.state == TokenState.ACTIVE, shown
revoke_token.sync(id, client=client)
revoked = read_token.sync(id, client=client)
assert isinstance(revoked, Token) and revoked.state == TokenState.REVOKED, revoked
active = update_token.sync(id, client=client, body=TokenPatch(is_active=True))
assert isinstance(active, Token) and active.is_active, active

since, until = (now - hour).isoformat(), (now + hour).isoformat()
usage = read_usage.sync(client=client, by="project", since=since, until=until)
assert isinstance(usage, list), usage
# Python's notation for UTC.
usage = read_usage.sync(client=client, since=(now - hour).astimezone(timezone.utc).isoformat())
assert isinstance(usage, list), usage
audit = list_audit.sync(client=client, action=ListAuditAction.TOKEN_REVOKE, token_id=id, since=since, until=until)
assert isinstance(audit, list) and [record.token_id for record in audit] == [id], audit
purged = purge_cache.sync(client=client, body=CachePurge(project_id=project.id))
assert isinstance(purged, CachePurged) and purged.purged_count == 0, purged

missing = read_token.sync_detailed(UUID("00000000-0000-4000-8000-000000000000"), client=client)
assert missing.status_code == 404 and isinstance(missing.parsed, Problem), missing
assert missing.parsed.code == ProblemCode.NOT_FOUND
taken = create_project.sync_detailed(client=client, body=ProjectCreate(name=label, api_key="another"))
assert taken.status_code == 409 and isinstance(taken.parsed, Problem), taken
assert taken.parsed.code == ProblemCode.NAME_TAKEN
print("the main job is done")
