"""session-messaging 12: what looks like a credential, or is known to be one, never gets through."""

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.log.redact import RedactingFilter, Redactor

LETTERS = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2eF4hJ6kL8n"  # 40 characters
PEM = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"

SECRETS = {
    "openai classic": ("sk-" + LETTERS + "T3BlbkFJ", "openai_key"),
    "openai project": ("sk-proj-" + LETTERS + "_x-Y", "openai_key"),
    "openai service account": ("sk-svcacct-" + LETTERS, "openai_key"),
    "deepseek and others of openai's shape": ("sk-" + "0a1b2c3d" * 4, "openai_key"),
    "anthropic": ("sk-ant-api03-" + LETTERS + "-_AA", "anthropic_key"),
    "openrouter": ("sk-or-v1-" + "0a1b2c3d" * 8, "openrouter_key"),
    "github classic": ("ghp_" + LETTERS[:36], "github_token"),
    "github server": ("ghs_" + LETTERS[:36], "github_token"),
    "github fine-grained": ("github_pat_" + LETTERS[:22] + "_" + LETTERS, "github_token"),
    "gitlab": ("glpat-" + LETTERS[:20], "gitlab_token"),
    "aws access key": ("AKIA" + "ABCDEFGH23456789", "aws_access_key"),
    "aws temporary key": ("ASIA" + "ABCDEFGH23456789", "aws_access_key"),
    "stripe": ("sk_live_" + LETTERS[:24], "stripe_key"),
    "stripe restricted": ("rk_test_" + LETTERS[:24], "stripe_key"),
    "stripe webhook": ("whsec_" + LETTERS[:32], "stripe_secret"),
    "slack bot": ("xoxb-" + "123456789012-1234567890123-" + LETTERS[:24], "slack_token"),
    "slack app": ("xapp-1-" + "A012BCDEFGH-1234567890-" + LETTERS, "slack_token"),
    "sendgrid": ("SG." + LETTERS[:22] + "." + LETTERS + "abc", "sendgrid_key"),
    "google": ("AIza" + LETTERS[:35], "google_api_key"),
    "npm": ("npm_" + LETTERS[:36], "npm_token"),
    "pypi": ("pypi-AgEIcHlwaS5vcmc" + LETTERS, "pypi_token"),
    "hugging face": ("hf_" + LETTERS[:34], "huggingface_token"),
    "groq": ("gsk_" + LETTERS + LETTERS[:12], "groq_key"),
    "openssh": (
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PEM}\n{PEM}\nabc=\n-----END OPENSSH PRIVATE KEY-----",
        "openssh_private_key",
    ),
    "pem": (
        f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n{PEM}\n-----END RSA PRIVATE KEY-----",
        "private_key",
    ),
    "pem, plain": (f"-----BEGIN PRIVATE KEY-----\n{PEM}\n-----END PRIVATE KEY-----", "private_key"),
    "pem, encrypted": (
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n"
        f"{PEM}\n-----END EC PRIVATE KEY-----",
        "private_key",
    ),
}

each_secret = pytest.mark.parametrize(("secret", "kind"), SECRETS.values(), ids=SECRETS.keys())

ORDINARY = [
    "from sklearn import svm  # pip install sk-learn",
    "task-123 depends on task-4567890123456789012345 and desk-lamp-0123456789012345678901",
    "sk-internationalization of the disk-0123456789abcdef0123456789abcdef",
    "ghp_ is how a token of GitHub starts; npm_config_registry and npm_package_name are variables",
    "the bearer of this letter; Bearer authentication is described in RFC 6750",
    "risk_test_results, task_live_view, mask_test_fixtures_for_the_whole_suite",
    "SG.1 and MSG.length.toString and AIzawa, AKIA alone, PAKIABCDEFGH23456789AB",
    "-----BEGIN CERTIFICATE-----\n" + PEM + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + PEM + "\n-----END PUBLIC KEY-----",
    PEM * 20,
    "sha256-" + LETTERS + "= 0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d",
    "ses_01J8ZQ3K5V7W9XABCDEFGHJKMN trn_01J8ZQ3K5V7W9XABCDEFGHJKMN",
    "xoxo-hugs-and-kisses, pypi-server, hf_hub_download(repo_id), secret_access_key is required",
    "",
    "\x00\ud800 lone surrogates \u202e and bidi",
]


@each_secret
def test_messaging_12_a_credential_becomes_its_typed_placeholder(secret: str, kind: str) -> None:
    assert Redactor().text(f"before {secret} after") == f"before [redacted:{kind}] after"


@each_secret
@pytest.mark.parametrize(
    "around", ["KEY={}", '{{"key": "{}"}}', "x\n{}\ny", "({})", "'{}',", "\t{}", "a={}&b=1", "`{}`"]
)
def test_messaging_12_a_credential_is_found_wherever_a_word_can_stand(
    secret: str, kind: str, around: str
) -> None:
    clean = Redactor().text(around.format(secret))
    assert clean == around.format(f"[redacted:{kind}]")


@each_secret
def test_messaging_12_json_stays_json_and_loses_the_credential(secret: str, kind: str) -> None:
    value = {
        "text": f"line\n{secret}\nline",
        "arguments": json.dumps({"content": f"\n{secret}"}),
        secret: [1, 2.5, None, True, f'"{secret}"', f"\\{secret}"],
        "untouched": 'ordinary \\ " \u2028 text \u00e9',
    }
    for ascii_only in (True, False):
        document = json.dumps(value, ensure_ascii=ascii_only)
        clean = Redactor().json_text(document)
        parsed = json.loads(clean)
        assert secret not in clean
        assert (
            secret.splitlines()[0][8:] not in clean.replace("PRIVATE KEY-----", "")
            or "\n" in secret
        )
        assert parsed["text"] == f"line\n[redacted:{kind}]\nline"
        assert json.loads(parsed["arguments"]) == {"content": f"\n[redacted:{kind}]"}
        assert parsed[f"[redacted:{kind}]"][:4] == [1, 2.5, None, True]
        assert parsed["untouched"] == value["untouched"]
        assert PEM not in clean


def test_messaging_12_a_letter_of_a_json_escape_is_never_taken_for_a_key() -> None:
    # Raw, these documents hold "npm_…", "rk_live_…" and "bearer …", made of an escape's letter.
    for value in ("\npm_" + LETTERS[:36], "\rk_live_" + LETTERS[:24], "\bearer " + LETTERS):
        document = json.dumps({"text": value})
        assert json.loads(Redactor().json_text(document)) == {"text": value}


@pytest.mark.parametrize("text", ORDINARY)
def test_messaging_12_ordinary_text_is_never_touched(text: str) -> None:
    redactor = Redactor()
    assert redactor.text(text) == text
    document = json.dumps({"text": text})
    assert redactor.json_text(document) == document


def test_messaging_12_the_scheme_in_front_of_a_token_stays() -> None:
    redactor = Redactor()
    assert redactor.text("Authorization: Bearer eyJhbGciOi.J9-_x") == (
        "Authorization: Bearer [redacted:bearer_token]"
    )
    assert redactor.text("aws_secret_access_key = " + LETTERS) == (
        "aws_secret_access_key = [redacted:aws_secret_key]"
    )
    assert redactor.text("https://hooks.slack.com/services/T0/B0/" + LETTERS) == (
        "https://hooks.slack.com/services/[redacted:slack_webhook]"
    )


def test_messaging_12_specific_kinds_come_before_general_ones() -> None:
    text = f"Bearer {SECRETS['anthropic'][0]}"
    assert Redactor().text(text) == "Bearer [redacted:anthropic_key]"


def test_messaging_12_a_key_block_that_was_cut_off_loses_what_is_there_of_it() -> None:
    clean = Redactor().text(
        f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}\n{PEM}\nand then (some prose)."
    )
    assert clean == "[redacted:private_key]\nand then (some prose)."


def test_messaging_12_two_key_blocks_do_not_swallow_the_text_between_them() -> None:
    pem = SECRETS["pem"][0]
    assert Redactor().text(f"{pem}\nbetween\n{pem}") == (
        "[redacted:private_key]\nbetween\n[redacted:private_key]"
    )


def test_messaging_12_known_values_are_hidden_as_they_are_and_as_json_writes_them() -> None:
    secret = 'p4ss"w\\rd-ü'
    redactor = Redactor([secret])
    assert redactor.text(f"x{secret}y") == "x[redacted:secret]y"
    for ascii_only in (True, False):
        nested = json.dumps({"a": secret}, ensure_ascii=ascii_only)
        document = json.dumps({"k": secret, "n": nested}, ensure_ascii=ascii_only)
        parsed = json.loads(redactor.json_text(document))
        assert parsed["k"] == "[redacted:secret]"
        assert json.loads(parsed["n"]) == {"a": "[redacted:secret]"}


def test_messaging_12_a_longer_known_value_goes_before_one_that_it_contains() -> None:
    assert Redactor(["12345678", "12345678-90"]).text("a 12345678-90 b") == "a [redacted:secret] b"


def test_messaging_12_short_and_dummy_values_are_no_secrets() -> None:
    redactor = Redactor(["short", "", "   ", "not-needed", "lm-studio"])
    redactor.add("1234567")
    text = "short lm-studio is not-needed 1234567"
    assert redactor.text(text) == text


def test_messaging_12_a_secret_added_later_is_hidden_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.text("the value is hunter2hunter2") == "the value is hunter2hunter2"
    redactor.add("hunter2hunter2")
    assert redactor.text("the value is hunter2hunter2") == "the value is [redacted:secret]"


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text()
        | st.sampled_from([s for s, _ in SECRETS.values()]),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
)
def test_messaging_12_json_text_always_gives_valid_json_and_is_idempotent(value: object) -> None:
    redactor = Redactor(["known-value-1"])
    clean = redactor.json_text(json.dumps(value))
    json.loads(clean)
    assert redactor.json_text(clean) == clean
    assert not any(secret in clean for secret, _ in SECRETS.values())


def test_a_log_record_is_redacted_with_its_arguments_and_its_traceback() -> None:
    secret = SECRETS["openai project"][0]
    records: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(self.format(record))

    handler = Keep()
    handler.addFilter(RedactingFilter(Redactor(["known-value-1"])))
    logger = logging.Logger("test")
    logger.addHandler(handler)
    try:
        raise ValueError(f"refused {secret}")
    except ValueError:
        logger.exception("key %s of %d", secret, 3)
    logger.warning("value %(v)s", {"v": "known-value-1"})
    logger.warning("wrong %d", secret)

    assert secret not in "".join(records)
    assert records[0].startswith("key [redacted:openai_key] of 3\nTraceback")
    assert "ValueError: refused [redacted:openai_key]" in records[0]
    assert records[1] == "value [redacted:secret]"
    assert "could not be formatted" in records[2]


def test_a_megabyte_of_text_full_of_near_misses_takes_no_quadratic_time() -> None:
    # Each of these would hang for minutes if a pattern backtracked over the whole text.
    redactor = Redactor()
    for piece in (
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "sk-a",
        "Bearer a",
        "xoxb-",
        "SG.a",
        "\\n",
        '"',
    ):
        text = piece * (1_000_000 // len(piece))
        redactor.text(text)
        redactor.json_text(json.dumps(text))


def test_of_secrets_that_are_added_from_many_threads_at_once_none_is_lost() -> None:
    redactor = Redactor()
    secrets = [f"secret-value-{number:04d}" for number in range(400)]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(redactor.add, secrets))
    finally:
        sys.setswitchinterval(switch)
    assert set(redactor.exact) == set(secrets)


def test_messaging_12_a_known_secret_is_hidden_as_html_writes_it_too() -> None:
    """Frames around what others say escape it, and are themselves written as JSON, or hold it."""
    secret = "aa<bb>&cc-'d\"e\u00e9-secret"
    redactor = Redactor([secret])
    for form in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        for quote in (True, False):
            framed = f"<frame>{escape(form, quote=quote)}</frame>"
            assert "bb" not in redactor.text(framed)
            for ascii_only in (True, False):
                document = json.dumps({"text": framed}, ensure_ascii=ascii_only)
                assert "bb" not in redactor.text(document)
                clean = json.loads(redactor.json_text(document))["text"]
                assert "[redacted:secret]" in clean and "bb" not in clean
    assert len(Redactor(["an-ordinary-secret-0123"]).exact) == 1
