"""Every knob: file < environment < flags; an unknown key is an error.

The file is `safelight.toml` (in the data directory, or named by `SAFELIGHT_CONFIG`); the environment uses the
upper-case name with the prefix `SAFELIGHT_`.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

from safelight.errors import ConfigurationError

PREFIX = "SAFELIGHT_"
PROVIDER_PREFIX = "SAFELIGHT_PROVIDER_"
"""`SAFELIGHT_PROVIDER_<NAME>_<WHAT>`: which names there are is not known here, see `upstreams.py`."""
ADDRESS = r"^https?://[^/\s]+(/.*)?$"
CONFIG_VARIABLE = "SAFELIGHT_CONFIG"
FILE_NAME = "safelight.toml"
LISTS = frozenset({"allowed_origins", "trusted_proxies"})
"""Settings that take several words, separated by commas in the environment."""
CLIENT_VARIABLES = frozenset({CONFIG_VARIABLE, "SAFELIGHT_URL", "SAFELIGHT_API_KEY"})
"""Variables that belong to the loader or to the commands that speak to a running service."""


def _check_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no time zone is called {name!r} on this machine") from None
    return name


Zone = Annotated[str, AfterValidator(_check_zone)]
"""The name of a time zone, such as `Europe/Berlin`."""


class _Table(BaseModel):
    """A table of the file; what it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ProviderSettings(_Table):
    """`[providers.<name>]`: an upstream that this installation uses.

    Every word that is none of its own is a credential, or with `_file` behind it the file that holds one. `keys`
    are several sets of credentials; what stands beside them is shared. Which credentials there are is up to the
    provider's declaration, which is asked later. `mode` says what callbacks may do: in `observe` they are judged
    and kept, and change nothing. `exclusive_key` says that nobody but safelight uses these credentials.
    """

    enabled: bool = True
    file: Path | None = None
    base_url: str | None = Field(None, pattern=ADDRESS)
    region: str | None = None
    jwks_url: str | None = Field(None, pattern=ADDRESS)
    mode: Literal["observe", "apply"] = "apply"
    exclusive_key: bool = False
    reconcile_hour: int | None = Field(None, ge=0, le=23)
    reconcile_zone: Zone | None = None
    credentials: dict[str, SecretStr] = Field(default_factory=dict)
    credential_files: dict[str, Path] = Field(default_factory=dict)
    keys: tuple[dict[str, SecretStr], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _gather_credentials(cls, table: Any) -> Any:
        if not isinstance(table, dict):
            return table
        own = {name: table[name] for name in table if name in cls.model_fields}
        rest = {name: table[name] for name in table if name not in cls.model_fields}
        files = {name.removesuffix("_file"): value for name, value in rest.items() if name.endswith("_file")}
        texts = {name: value for name, value in rest.items() if not name.endswith("_file")}
        gathered = {
            "credentials": {**own.pop("credentials", {}), **texts},
            "credential_files": {**own.pop("credential_files", {}), **files},
        }
        return {**own, **gathered}


class ModelSettings(_Table):
    """`[models.<name>]`: what this installation changes about a model. `routes` are its providers in order."""

    enabled: bool = True
    price: int | None = Field(None, ge=0)
    routes: tuple[str, ...] = ()
    is_default: bool | None = None
    default_p95_s: float | None = Field(None, gt=0)
    max_n: int | None = Field(None, ge=1)


def default_data_dir() -> Path:
    """`/var/lib/safelight` for root (its database runs as another OS user), else `./safelight-data`."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return Path("/var/lib/safelight") if is_root else Path("safelight-data").resolve()


class Settings(BaseModel):
    """One installation's settings. Times are seconds, sizes bytes, unless the name says otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    data_dir: Path = Field(default_factory=default_data_dir, description="Where everything local lives.")
    database_url: str | None = Field(None, description="A PostgreSQL server; none means the embedded one.")
    database_direct_url: str | None = Field(
        None, description="The same server past any pooler, for worker, live events and migrate."
    )
    database_pool: int = Field(10, ge=2, le=200, description="Connections a process may hold.")
    host: str = Field("127.0.0.1", description="Address that the API listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port of the API; 0 takes a free one.")
    lab_port: int = Field(8001, ge=0, le=65535, description="Port of the lab; 0 takes a free one.")
    trusted_proxies: tuple[str, ...] = Field(
        (), description="Addresses of reverse proxies whose X-Forwarded-For is believed."
    )
    public_url: str | None = Field(
        None,
        pattern=ADDRESS,
        description="Our address as others reach it, for callbacks, download links and pictures by address.",
    )
    lab_url: str | None = Field(
        None, pattern=ADDRESS, description="A lab that runs elsewhere; its three models join the catalog."
    )
    with_lab: bool = Field(False, description="`serve` starts the lab although providers are configured.")
    providers: dict[str, ProviderSettings] = Field(
        default_factory=dict, description="Upstreams in use, one table each; see below."
    )
    provider_variables: dict[str, SecretStr] = Field(
        default_factory=dict, description="The same from the environment: SAFELIGHT_PROVIDER_<NAME>_<WHAT>."
    )
    models: dict[str, ModelSettings] = Field(
        default_factory=dict, description="Price, routes and bounds of models, one table each; see below."
    )
    secret_key: SecretStr | None = Field(
        None, description="Pepper and signing key; made in the data directory on first start if absent."
    )
    store_url: str | None = Field(
        None, description="s3://, gs:// or az:// bucket; none means the data directory."
    )
    allowed_origins: tuple[str, ...] = Field(
        (),
        description="Origins (scheme://host:port) that may be fetched although private or not https, as inputs too.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="debug, info, warning or error."
    )
    log_format: Literal["json", "text", "auto"] = Field(
        "auto", description="json, text, or auto: text on a terminal."
    )

    max_body_bytes: int = Field(1_048_576, ge=1_024, description="Largest body of a JSON request.")
    max_upload_bytes: int = Field(
        25 * 1024 * 1024, ge=1_024, description="Largest picture that a customer may hand in."
    )
    max_account_upload_bytes: int = Field(
        2 * 1024 * 1024 * 1024, ge=1_024, description="What the uploads of an account may have together."
    )
    max_batch_bytes: int = Field(
        32 * 1024 * 1024, ge=1_024, description="Largest body of a batch; four are held in memory at most."
    )
    max_callback_bytes: int = Field(262_144, ge=1_024, description="Largest body of a callback.")
    max_requests_per_s: float = Field(2_000.0, gt=0, description="Requests an account may make per second.")
    max_open_tasks: int = Field(100_000, ge=1, description="Unfinished tasks an account may have.")

    hold_s: float = Field(
        55.0,
        ge=0,
        le=600,
        description="How long `/v1/images` holds a request for its picture; then it answers 202.",
    )
    max_held: int = Field(
        2_000, ge=0, description="Requests a process holds at once; an account may have half of them."
    )
    max_streams: int = Field(
        10, ge=1, description="Streams of live events an account may have open at a process."
    )
    stream_heartbeat_s: float = Field(
        15.0, gt=0, le=600, description="How often an idle stream says that it lives."
    )
    stream_max_s: float = Field(
        3_600.0, gt=0, description="How long a stream lasts; then its client opens another and resumes."
    )

    submit_concurrency: int = Field(128, ge=1, description="Submit calls one worker may have in flight.")
    archive_concurrency: int = Field(32, ge=2, description="Results one worker copies at once.")
    poll_concurrency: int = Field(32, ge=1, description="Looks one worker has in flight per provider.")
    deliver_concurrency: int = Field(
        256, ge=2, le=2_000, description="Webhook tries one worker begins at once; slow ones do not count."
    )
    start_by_s: float = Field(
        3_600.0, gt=0, description="A task that has not started by then fails, released."
    )
    decide_by_s: float = Field(86_400.0, ge=0, description="How long a person has to decide a review.")
    sweep_interval_s: float = Field(30.0, gt=0, description="How often overdue rows are woken again.")
    reconcile_hour: int = Field(
        4, ge=0, le=23, description="From this hour on the day before is reconciled with each provider."
    )
    reconcile_zone: Zone = Field("UTC", description="The time zone of that hour; days are UTC all the same.")
    poll_interval_s: float = Field(0.5, gt=0, description="How often due looks are claimed.")
    drain_s: float = Field(25.0, ge=0, description="How long a stopping worker lets its work finish.")
    asset_url_ttl_s: int = Field(900, ge=1, le=86_400, description="Life of a signed download URL.")
    max_asset_bytes: int = Field(50 * 1024 * 1024, ge=1_024, description="Largest picture that is copied.")
    keep_tasks_days: int = Field(
        0,
        ge=0,
        description="Days after its end when what a task said and drew is erased; 0 keeps it for ever.",
    )
    keep_assets_days: int = Field(
        0, ge=0, description="Days after its end when a task's pictures are deleted; 0 keeps them for ever."
    )
    keep_events_days: int = Field(
        0, ge=0, description="Days after its end when a task's history is deleted; 0 keeps it for ever."
    )
    keep_callbacks_days: int = Field(
        90, ge=0, description="Days after its end when a task's callbacks are deleted; 0 keeps them for ever."
    )
    keep_receipts_days: int = Field(
        30, ge=0, description="Days for which receipts are kept, 30 at the least; 0 keeps them for ever."
    )
    keep_deliveries_days: int = Field(
        30, ge=1, description="Days for which webhook events, deliveries and tries are kept."
    )
    keep_jobs_days: int = Field(2, ge=1, description="Days for which the queue's own log is kept.")
    retention_interval_s: float = Field(
        300.0, gt=0, description="How often what has been kept long enough is looked for."
    )
    alert_url: str | None = Field(
        None, pattern=ADDRESS, description="Where reviews and findings are told, by a signed call."
    )
    alert_secret: SecretStr | None = Field(
        None, description="Signs those calls (Standard Webhooks): whsec_ and base64 of 24 to 64 bytes."
    )
    lab_knobs: str = Field("{}", description="Misbehaviour of the lab that `serve` starts, as JSON.")

    @model_validator(mode="after")
    def _check_alerts(self) -> Self:
        if (self.alert_url is None) != (self.alert_secret is None):
            raise ValueError("alert_url and alert_secret belong together")
        if self.alert_secret is not None and not _is_signing_secret(self.alert_secret.get_secret_value()):
            raise ValueError("alert_secret is whsec_ and base64 of 24 to 64 bytes")
        return self


def _is_signing_secret(text: str) -> bool:
    try:
        return text.startswith("whsec_") and 24 <= len(base64.b64decode(text[6:], validate=True)) <= 64
    except ValueError:
        return False


def load_settings(
    flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """Read the file, then the environment, then flags that are not None; later ones win.

    Raises:
        ConfigurationError: an unknown key, a value that does not fit, or a file that cannot be read.
    """
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    from_environment = _from_environment(environ)
    merged: dict[str, Any] = {**from_environment, **given}
    data_dir = Path(merged.get("data_dir") or default_data_dir())
    merged = {**_from_file(data_dir, environ), **merged}
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise ConfigurationError(f"unknown setting {place!r}") from None
        raise ConfigurationError(f"setting {place!r}: {first['msg']}") from None


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"provider_variables": {}}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable in CLIENT_VARIABLES:
            continue
        if variable.startswith(PROVIDER_PREFIX):
            if value.strip():
                found["provider_variables"][variable] = value.strip()
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in Settings.model_fields:
            raise ConfigurationError(f"unknown setting {variable} in the environment")
        found[name] = tuple(value.split(",")) if name in LISTS else value
    return found


def _from_file(data_dir: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    named = environ.get(CONFIG_VARIABLE)
    path = Path(named) if named else data_dir / FILE_NAME
    if not path.exists():
        if named:
            raise ConfigurationError(f"{CONFIG_VARIABLE} names {path}, which does not exist")
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from None
    if "provider_variables" in document:
        raise ConfigurationError("unknown setting 'provider_variables'")
    return _with_places(document, path.parent)


def _with_places(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Files that a provider's table names are meant relative to the file it stands in."""
    tables = document.get("providers")
    if not isinstance(tables, dict):
        return document
    placed = {
        name: {
            key: str(folder / value) if isinstance(value, str) and _names_file(key) else value
            for key, value in table.items()
        }
        if isinstance(table, dict)
        else table
        for name, table in tables.items()
    }
    return {**document, "providers": placed}


def _names_file(key: str) -> bool:
    return key == "file" or key.endswith("_file")


MIN_SECRET_BYTES = 32


def load_secret(settings: Settings) -> bytes:
    """The secret key: from the settings, else from `<data_dir>/secret`, made on first start with mode 0600.

    Raises:
        ConfigurationError: it is too short, or the file cannot be used.
    """
    if settings.secret_key is not None:
        secret = settings.secret_key.get_secret_value().encode()
    else:
        path = settings.data_dir / "secret"
        try:
            secret = _read_or_make(path)
        except OSError as error:
            raise ConfigurationError(f"the secret key in {path} cannot be used: {error}") from None
    if len(secret) < MIN_SECRET_BYTES:
        raise ConfigurationError(f"the secret key needs at least {MIN_SECRET_BYTES} bytes")
    return secret


def derive_key(secret: bytes, purpose: str) -> bytes:
    """A key of its own for one purpose, so that no two purposes share one."""
    return hmac.digest(secret, f"safelight {purpose}".encode(), "sha256")


def _read_or_make(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_private(path, secrets.token_urlsafe(48), is_new=True)
    return path.read_bytes().strip()


def write_private(path: Path, text: str, *, is_new: bool = False) -> None:
    """Write a file that only its owner can read: whole or not at all; with `is_new` the first writer wins."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        else:
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
