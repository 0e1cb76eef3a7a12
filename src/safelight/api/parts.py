"""What the door is made of: everything it needs, handed in by whoever builds the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from safelight.assets.inputlinks import InputLinks
from safelight.assets.pictures import PicturePool
from safelight.assets.signing import UrlSigner
from safelight.assets.store import AssetStore
from safelight.db.database import Database
from safelight.domain.catalog import Catalog
from safelight.lifecycle.accept import Accept, Cancel
from safelight.lifecycle.administration import Administration
from safelight.lifecycle.batches import Batches
from safelight.lifecycle.endpoints import Endpoints
from safelight.lifecycle.inputs import Inputs
from safelight.lifecycle.pace import Paces
from safelight.lifecycle.receive import Receive
from safelight.lifecycle.retention import Erase
from safelight.lifecycle.review import Review
from safelight.lifecycle.routing import Routing
from safelight.lifecycle.sessions import Sessions
from safelight.lifecycle.uploads import Uploads
from safelight.settings import Settings


@dataclass(frozen=True, slots=True)
class ApiParts:
    """The parts; `pepper` is the key under which API keys are hashed, `providers` the names of all provider keys.

    `is_ready` tells whether the database answers and its schema is the one that this version needs.
    """

    settings: Settings
    database: Database
    catalog: Catalog
    accept: Accept
    batches: Batches
    cancel: Cancel
    erase: Erase
    receive: Receive
    uploads: Uploads
    inputs: Inputs
    store: AssetStore
    pictures: PicturePool
    signer: UrlSigner
    links: InputLinks
    review: Review
    administration: Administration
    paces: Paces
    routing: Routing
    endpoints: Endpoints
    sessions: Sessions
    providers: Sequence[str]
    pepper: bytes = field(repr=False)
    is_ready: Callable[[], Awaitable[bool]]
