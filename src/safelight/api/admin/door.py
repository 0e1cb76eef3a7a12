"""The operator's door as a whole."""

from __future__ import annotations

from fastapi import FastAPI

from safelight.api.admin.accounts import AdminAccounts
from safelight.api.admin.figures import Figures
from safelight.api.admin.keeper import Keeper
from safelight.api.admin.pictures import AdminPictures
from safelight.api.admin.records import Records
from safelight.api.admin.sessions import console_sessions
from safelight.api.admin.tasks import AdminTasks
from safelight.api.admin.webhooks import AdminWebhooks
from safelight.api.parts import ApiParts


def add_admin_routes(app: FastAPI, parts: ApiParts) -> None:
    """Add every route below `/admin`, behind one keeper."""
    keeper = Keeper(
        parts.database, parts.administration, parts.sessions, public_url=parts.settings.public_url
    )
    console_sessions(parts, keeper).add_to(app)
    AdminTasks(parts, keeper).add_to(app)
    AdminPictures(parts, keeper).add_to(app)
    Records(parts, keeper).add_to(app)
    AdminAccounts(parts, keeper).add_to(app)
    Figures(parts, keeper).add_to(app)
    AdminWebhooks(parts, keeper).add_to(app)
