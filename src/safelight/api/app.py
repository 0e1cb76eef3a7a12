"""The application: every route in one place, inside the envelope."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

import safelight
from safelight.api.account import Account
from safelight.api.admin.door import add_admin_routes
from safelight.api.assets import Assets
from safelight.api.auth import Doorkeeper
from safelight.api.batches import Batches
from safelight.api.callbacks import Callbacks
from safelight.api.catalog import Models
from safelight.api.deliveries import Deliveries
from safelight.api.described import DescribedApp
from safelight.api.envelope import Envelope
from safelight.api.events import Events
from safelight.api.health import Health
from safelight.api.inputs import Inputs
from safelight.api.limits import Limit
from safelight.api.openai.images import Images
from safelight.api.parts import ApiParts
from safelight.api.problems import problem_of_http
from safelight.api.routes import Route
from safelight.api.sessions import studio_sessions
from safelight.api.tasks import Tasks
from safelight.api.uploads import Uploads
from safelight.api.waiting import Waiting
from safelight.api.web import Web
from safelight.api.webhooks import Webhooks
from safelight.lifecycle.live import Live


def create_app(parts: ApiParts) -> FastAPI:
    """Build the ASGI application; it starts and stops nothing."""
    rate = parts.settings.max_requests_per_s
    doorkeeper = Doorkeeper(
        parts.database,
        parts.pepper,
        requests=Limit(rate, burst=rate),
        sessions=parts.sessions,
        public_url=parts.settings.public_url,
    )
    app = DescribedApp(
        title="safelight",
        version=safelight.__version__,
        summary="Takes AI image tasks, answers at once, and never loses a picture or a credit.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # FastAPI's own would record whole addresses, and with them the tokens of callbacks and signed links.
        telemetry={"tracing": False, "metrics": False, "logs": False},
        middleware=[Middleware(Envelope)],
        exception_handlers={HTTPException: problem_of_http},
    )
    app.router.route_class = Route
    # Whoever stops the server asks these to answer those who are held, and to end those who watch.
    waiting = app.state.waiting = Waiting(parts.database, places=parts.settings.max_held)
    live = app.state.live = Live(parts.database, streams=parts.settings.max_streams)
    # In the order of how often they are asked: the router looks at them one by one.
    Tasks(parts, doorkeeper).add_to(app)
    Events(parts, doorkeeper, live).add_to(app)
    Batches(parts, doorkeeper).add_to(app)
    Callbacks(parts).add_to(app)
    Assets(parts, doorkeeper).add_to(app)
    Uploads(parts, doorkeeper).add_to(app)
    Images(parts, doorkeeper, waiting).add_to(app)
    Inputs(parts).add_to(app)
    Health(parts).add_to(app)
    Account(parts, doorkeeper).add_to(app)
    Models(parts, doorkeeper).add_to(app)
    Webhooks(parts, doorkeeper).add_to(app)
    Deliveries(parts, doorkeeper).add_to(app)
    studio_sessions(parts, doorkeeper).add_to(app)
    Web().add_to(app)
    add_admin_routes(app, parts)
    return app
