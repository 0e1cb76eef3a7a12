"""Which upstreams an installation uses: by a key in the environment or a table in the file, and by nothing else."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import aiohttp
import pytest

from safelight.errors import ConfigurationError
from safelight.service import make_provider
from safelight.settings import Settings, load_settings
from safelight.upstreams import ProviderKey, Upstreams, read_keys, read_upstreams

FAL = {"SAFELIGHT_PROVIDER_FAL_API_KEY": "fal-1"}


def loaded(folder: Path, toml: str = "", environ: dict[str, str] | None = None) -> Settings:
    (folder / "safelight.toml").write_text(toml)
    return load_settings({"data_dir": folder}, environ or {})


def keys(folder: Path, toml: str = "", environ: dict[str, str] | None = None) -> list[ProviderKey]:
    return list(read_keys(loaded(folder, toml, environ)))


def upstreams(folder: Path, toml: str = "", environ: dict[str, str] | None = None) -> Upstreams:
    return read_upstreams(loaded(folder, toml, environ))


def told(found: list[ProviderKey]) -> dict[str, dict[str, str]]:
    return {
        key.name: {name: secret.get_secret_value() for name, secret in key.credentials.items()}
        for key in found
    }


def test_a_key_in_the_environment_enables_its_provider(tmp_path: Path) -> None:
    assert told(keys(tmp_path, environ=FAL)) == {"fal": {"api_key": "fal-1"}}
    assert keys(tmp_path) == []
    assert keys(tmp_path, environ={"SAFELIGHT_PROVIDER_FAL_API_KEY": " "}) == []


def test_the_upstreams_own_variables_are_never_read(tmp_path: Path) -> None:
    shell = {"OPENAI_API_KEY": "sk-1", "FAL_KEY": "x", "REPLICATE_API_TOKEN": "r8", "API_KEY": "y"}
    assert keys(tmp_path, environ=shell) == []
    with pytest.raises(ConfigurationError, match="no provider is configured"):
        upstreams(tmp_path, environ=shell)


def test_a_number_makes_another_key_and_what_has_none_is_shared(tmp_path: Path) -> None:
    environ = {
        "SAFELIGHT_PROVIDER_REPLICATE_API_KEY": "one",
        "SAFELIGHT_PROVIDER_REPLICATE_API_KEY_2": "two",
        "SAFELIGHT_PROVIDER_REPLICATE_API_KEY_7": "seven",
        "SAFELIGHT_PROVIDER_REPLICATE_CALLBACK_SECRET": "whsec_c2hhcmVk",
        "SAFELIGHT_PROVIDER_REPLICATE_CALLBACK_SECRET_7": "whsec_c2V2ZW4=",
    }
    assert told(keys(tmp_path, environ=environ)) == {
        "replicate": {"api_key": "one", "callback_secret": "whsec_c2hhcmVk"},
        "replicate-2": {"api_key": "two", "callback_secret": "whsec_c2hhcmVk"},
        "replicate-7": {"api_key": "seven", "callback_secret": "whsec_c2V2ZW4="},
    }
    assert upstreams(tmp_path, environ=environ).names == {
        "replicate": ["replicate", "replicate-2", "replicate-7"]
    }


def test_the_file_says_the_same_and_the_environment_wins(tmp_path: Path) -> None:
    toml = """
        [providers.replicate]
        callback_secret = "whsec_c2hhcmVk"
        keys = [{ api_key = "one" }, { api_key = "two" }]
        base_url = "https://relay.example/v1"
        [providers.fal]
        api_key = "file"
    """
    found = keys(tmp_path, toml, {**FAL, "SAFELIGHT_PROVIDER_REPLICATE_API_KEY_2": "other"})
    assert told(found) == {
        "replicate": {"api_key": "one", "callback_secret": "whsec_c2hhcmVk"},
        "replicate-2": {"api_key": "other", "callback_secret": "whsec_c2hhcmVk"},
        "fal": {"api_key": "fal-1"},
    }
    assert {key.base_url for key in found} == {"https://relay.example/v1", None}
    changed = keys(tmp_path, toml, {"SAFELIGHT_PROVIDER_REPLICATE_API_KEY": "first"})
    assert [one["api_key"] for one in told(changed).values()] == ["first", "two", "file"]


def test_the_longest_name_wins_and_a_dash_is_an_underscore(tmp_path: Path) -> None:
    environ = {
        "SAFELIGHT_PROVIDER_LUMA_AGENTS_API_KEY": "a",
        "SAFELIGHT_PROVIDER_LUMA_API_KEY": "b",
        "SAFELIGHT_PROVIDER_FLUX_ART_API_KEY": "c",
    }
    assert told(keys(tmp_path, environ=environ)) == {
        "luma-agents": {"api_key": "a"},
        "luma": {"api_key": "b"},
        "flux-art": {"api_key": "c"},
    }


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("SAFELIGHT_PROVIDER_FALL_API_KEY", ["FALL_API_KEY", "'fal'"]),
        ("SAFELIGHT_PROVIDER_LAB_POLL_API_KEY", ["unknown provider"]),
        ("SAFELIGHT_PROVIDER_FAL_API_KEE", ["FAL_API_KEE", "'api_key'"]),
        ("SAFELIGHT_PROVIDER_FAL_BASE_URI", ["FAL_BASE_URI", "'base_url'"]),
        ("SAFELIGHT_PROVIDER_VARIABLES", ["unknown provider"]),
        ("SAFELIGHT_PROVIDER_FAL_REGION", ["provider fal", "'api_key'", "SAFELIGHT_PROVIDER_FAL_API_KEY"]),
    ],
)
def test_a_variable_that_means_nothing_is_an_error_that_names_the_near_one(
    variable: str, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        keys(tmp_path, environ={variable: "secret-value"})
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert "secret-value" not in str(refused.value)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ('[providers.replicat]\napi_key = "x"', ["[providers.replicat]", "'replicate'"]),
        ('[providers.fal]\napi_kee = "hidden"', ["'api_kee'", "[providers.fal]", "'api_key'"]),
        ('[providers.fal]\nkeys = [{ apikey = "hidden" }]', ["'apikey'", "'api_key'"]),
        ("[providers.fal]\napi_key = 7", ["providers.fal"]),
        ("[providers.fal]\nenabled = true", ["provider fal", "'api_key'"]),
        ('[providers.fal]\napi_key_file = "absent"', ["[providers.fal]", "absent"]),
        ('[providers.tencent]\naccess_key = "id"', ["'secret_key'", "SAFELIGHT_PROVIDER_TENCENT_SECRET_KEY"]),
        ('[providers.fal]\nkeys = [{ api_key = "a" }, {}]', ["SAFELIGHT_PROVIDER_FAL_API_KEY_2"]),
        ('provider_variables = { X = "y" }', ["provider_variables"]),
        ('[providers.fal]\napi_key = "x"\nbase_url = "nonsense"', ["base_url"]),
    ],
)
def test_a_table_that_cannot_be_meant_is_an_error_that_says_the_mend(
    toml: str, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        keys(tmp_path, toml)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert "hidden" not in str(refused.value)


def test_secrets_are_seen_nowhere(tmp_path: Path) -> None:
    settings = loaded(tmp_path, '[providers.replicate]\napi_key = "hidden-1"', {
        "SAFELIGHT_PROVIDER_FAL_API_KEY": "hidden-2"
    })  # fmt: skip
    shown = f"{settings!r} {settings} {settings.model_dump_json()} {read_keys(settings)!r}"
    assert "hidden" not in shown


def test_a_credential_may_lie_in_a_file_of_its_own_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "fal.key").write_text("from-a-file\n")
    assert told(keys(tmp_path, '[providers.fal]\napi_key_file = "fal.key"')) == {
        "fal": {"api_key": "from-a-file"}
    }


def test_a_table_can_switch_off_what_the_environment_enables(tmp_path: Path) -> None:
    assert keys(tmp_path, "[providers.fal]\nenabled = false", FAL) == []


def test_an_upstream_without_credentials_is_enabled_by_its_address(tmp_path: Path) -> None:
    environ = {"SAFELIGHT_PROVIDER_COMFYUI_BASE_URL": "http://gpu.lan:8188"}
    found = upstreams(tmp_path, environ=environ)
    assert [(key.name, key.base_url) for key in found.keys] == [("comfyui", "http://gpu.lan:8188")]
    assert found.origins == ("http://gpu.lan:8188",)


@pytest.mark.parametrize(
    ("base_url", "origins"),
    [
        ("https://relay.example/v1", ()),
        ("http://relay.example/v1", ("http://relay.example",)),
        ("https://10.0.0.7:8443/v1", ("https://10.0.0.7:8443",)),
        ("https://203.1.2.3/v1", ()),
        ("https://gpu.internal/v1", ("https://gpu.internal",)),
        ("https://gpu/v1", ("https://gpu",)),
    ],
)
def test_results_may_be_fetched_from_an_upstream_in_ones_own_network(
    base_url: str, origins: tuple[str, ...], tmp_path: Path
) -> None:
    environ = {**FAL, "SAFELIGHT_PROVIDER_FAL_BASE_URL": base_url}
    assert upstreams(tmp_path, environ=environ).origins == origins


def test_ones_own_declaration_is_named_by_a_table(tmp_path: Path) -> None:
    shipped = resources.files("safelight.providers") / "declarations" / "relay.toml"
    own = shipped.read_text(encoding="utf-8").replace('name = "relay"', 'name = "myrelay"', 1)
    (tmp_path / "mine.toml").write_text(own)
    table = '[providers.{}]\nfile = "mine.toml"\nbase_url = "https://relay.example/v1"\napi_key = "k"\n'
    (key,) = keys(tmp_path, table.format("myrelay"))
    assert (key.name, key.declaration.name, key.base_url) == (
        "myrelay",
        "myrelay",
        "https://relay.example/v1",
    )
    with pytest.raises(ConfigurationError, match=r"declares 'myrelay'; write \[providers.myrelay\]"):
        keys(tmp_path, table.format("other"))
    environ = {"SAFELIGHT_PROVIDER_MYRELAY_API_KEY_2": "second"}
    assert list(told(keys(tmp_path, table.format("myrelay"), environ))) == ["myrelay", "myrelay-2"]


async def test_every_key_is_a_provider_of_its_own(tmp_path: Path) -> None:
    found = keys(tmp_path, environ={**FAL, "SAFELIGHT_PROVIDER_FAL_API_KEY_2": "fal-2"})
    async with aiohttp.ClientSession() as session:
        made = [make_provider(key, session) for key in found]
    assert [provider.name for provider in made] == ["fal", "fal-2"]
    assert made[0].capabilities == made[1].capabilities


# ----------------------------------------------------------------------------------------- models

TWO = {"SAFELIGHT_PROVIDER_FLUX_ART_API_KEY": "a", "SAFELIGHT_PROVIDER_APIMART_API_KEY": "b"}
COMMON = "gpt-image-2"


def routes_of(found: Upstreams, name: str) -> list[str]:
    model = found.catalog.find(name)
    assert model is not None
    return [route.provider for route in model.routes]


def test_models_of_the_same_name_are_routes_of_one_in_the_order_of_the_file(tmp_path: Path) -> None:
    assert routes_of(upstreams(tmp_path, environ=TWO), COMMON) == ["apimart", "flux-art"]
    tables = "[providers.flux-art]\n[providers.apimart]\n"
    assert routes_of(upstreams(tmp_path, tables, TWO), COMMON) == ["flux-art", "apimart"]
    ordered = f'[models."{COMMON}"]\nroutes = ["flux-art", "apimart"]\n'
    assert routes_of(upstreams(tmp_path, ordered, TWO), COMMON) == ["flux-art", "apimart"]
    single = f'[models."{COMMON}"]\nroutes = ["flux-art"]\n'
    assert routes_of(upstreams(tmp_path, single, TWO), COMMON) == ["flux-art"]


def test_a_new_model_may_be_put_together_from_what_providers_call_otherwise(tmp_path: Path) -> None:
    toml = """
        [models.schnell]
        routes = ["fal/fal-flux-schnell", "replicate/replicate-flux-schnell"]
        price = 9
        is_default = true
    """
    environ = {**FAL, "SAFELIGHT_PROVIDER_REPLICATE_API_KEY": "r"}
    found = upstreams(tmp_path, toml, environ)
    model = found.catalog.find("schnell")
    assert model is not None
    assert (model.price, routes_of(found, "schnell")) == (9, ["fal", "replicate"])
    assert found.catalog.default is model
    assert found.catalog.find("fal-flux-schnell") is not None


def test_a_model_s_price_bounds_and_place_can_be_changed(tmp_path: Path) -> None:
    toml = f"""
        [models."{COMMON}"]
        price = 42
        max_n = 1
        default_p95_s = 33
        is_default = true
    """
    model = upstreams(tmp_path, toml, TWO).catalog.find(COMMON)
    assert model is not None
    assert (model.price, model.is_default) == (42, True)
    assert {(route.max_n, route.default_p95_s) for route in model.routes} == {(1, 33.0)}
    gone = upstreams(tmp_path, f'[models."{COMMON}"]\nenabled = false', TWO).catalog
    assert gone.find(COMMON) is None
    assert gone.models


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[models.gpt-imagee-2]\nprice = 1", ["[models.gpt-imagee-2]", "'gpt-image-2'"]),
        ('[models.gpt-image-2]\nroutes = ["fal"]', ["route 'fal'", "flux-art/gpt-image-2"]),
        (
            '[models.x]\nroutes = ["apimart/gpt-image-3"]',
            ["route 'apimart/gpt-image-3'", "apimart/gpt-image-2"],
        ),
        ("[models.gpt-image-2]\nmax_n = 999", ["[models.gpt-image-2]", "max_n"]),
        ("[models.gpt-image-2]\nprice = -1", ["price"]),
        ("[models.gpt-image-2]\ncost = 1", ["cost"]),
        (
            "[models.gpt-image-2]\nis_default = true\n[models.nano-banana-2]\nis_default = true",
            ["'gpt-image-2'", "'nano-banana-2'"],
        ),
    ],
)
def test_a_change_to_a_model_that_cannot_be_meant_is_an_error(
    toml: str, words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        upstreams(tmp_path, toml, TWO)
    assert all(word in str(refused.value) for word in words), str(refused.value)


def test_at_most_one_model_is_the_default_and_the_lab_comes_last(tmp_path: Path) -> None:
    environ = {**TWO, **FAL, "SAFELIGHT_LAB_URL": "http://127.0.0.1:8001"}
    found = upstreams(tmp_path, environ=environ)
    assert sum(model.is_default for model in found.catalog.models.values()) == 1
    assert list(found.names)[-3:] == ["lab-callback", "lab-poll", "lab-sync"]
    alone = upstreams(tmp_path, environ={"SAFELIGHT_LAB_URL": "http://127.0.0.1:8001"})
    assert [model.name for model in alone.catalog.models.values() if model.is_default] == ["lab-callback"]
