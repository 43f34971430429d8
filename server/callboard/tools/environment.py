"""The environment that commands of an agent run in: what they need, and no secrets (DESIGN 8)."""

import re
from collections.abc import Collection, Iterator, Mapping

_ALLOWED = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TMP",
        "TEMP",
        "HOSTNAME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_DATA_DIRS",
        "XDG_CONFIG_DIRS",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "PYENV_ROOT",
        "PYENV_VERSION",
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "UV_CACHE_DIR",
        "PIP_CACHE_DIR",
        "PIPX_HOME",
        "POETRY_HOME",
        "NVM_DIR",
        "NODE_PATH",
        "NODE_OPTIONS",
        "NPM_CONFIG_PREFIX",
        "VOLTA_HOME",
        "PNPM_HOME",
        "DENO_DIR",
        "BUN_INSTALL",
        "GOPATH",
        "GOROOT",
        "GOBIN",
        "GOCACHE",
        "GOMODCACHE",
        "GOFLAGS",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "CARGO_TARGET_DIR",
        "JAVA_HOME",
        "JDK_HOME",
        "MAVEN_HOME",
        "M2_HOME",
        "GRADLE_HOME",
        "GRADLE_USER_HOME",
        "SDKMAN_DIR",
        "ANDROID_HOME",
        "ANDROID_SDK_ROOT",
        "DOTNET_ROOT",
        "GEM_HOME",
        "GEM_PATH",
        "RBENV_ROOT",
        "ASDF_DIR",
        "ASDF_DATA_DIR",
        "MISE_DATA_DIR",
        "HOMEBREW_PREFIX",
        "NIX_PATH",
        "NIX_PROFILES",
        "CC",
        "CXX",
        "CFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
        "CPATH",
        "LIBRARY_PATH",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "PKG_CONFIG_PATH",
        "CMAKE_PREFIX_PATH",
        "MAKEFLAGS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "WINDIR",
        "COMSPEC",
        "PATHEXT",
        "USERPROFILE",
        "HOMEDRIVE",
        "HOMEPATH",
        "APPDATA",
        "LOCALAPPDATA",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "USERNAME",
        "NUMBER_OF_PROCESSORS",
        "PROCESSOR_ARCHITECTURE",
        "OS",
    ]
)
_ALLOWED_PREFIXES = ("LC_",)

_SECRET_NAME = re.compile(
    r"(?i)(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASS|PASSWD|PASSWORD|PASSPHRASE|CREDENTIALS?|AUTH|COOKIE|PAT)"
    r"S?(_|\Z)|PASSWORD|SECRET|APIKEY"
)
_SECRET_VALUE = re.compile(
    r"(?i)\b(sk|pk|rk)[-_][a-z0-9_-]{16,}|\bgh[pousr]_[a-z0-9]{20,}|\bgithub_pat_|\bxox[abprs]-"
    r"|\bAKIA[0-9A-Z]{12,}|\beyJ[a-z0-9_-]{10,}\.|-----BEGIN|\bglpat-|\bAIza[0-9a-z_-]{20,}"
    r"|[a-z][a-z0-9+.-]*://[^/\s@]+@"
)
_NAMED_IN_VALUE = re.compile(
    r"(?i)(api_?key|token|secret|passw(or)?d|passphrase|credentials?)\w*\s*[=:]\s*\S"
)
_URL_PASSWORD = re.compile(r"://[^/\s@:]*:([^/\s@]+)@")

CALM = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""What keeps programs from colours, pagers, editors and questions that nobody could answer."""


def scrubbed_environment(environ: Mapping[str, str], allow: Collection[str] = ()) -> dict[str, str]:
    """The part of `environ` that a command may see: a list of well-known names, without anything
    whose name or value looks like a key, a token, a password, or a URL with a user or password in it.
    `allow` names what the user's own configuration lets through besides."""
    return {
        name: value
        for name, value in environ.items()
        if name in allow
        or (
            _is_allowed(name.upper())
            and _SECRET_NAME.search(name) is None
            and _SECRET_VALUE.search(value) is None
            and _NAMED_IN_VALUE.search(value) is None
        )
    }


def secret_values(environ: Mapping[str, str]) -> Iterator[str]:
    """The values in `environ` that are secrets by their names, and the passwords in its URLs: what must
    not be shown, by whatever way somebody came by it. Places of files and plain words are left out."""
    for name, value in environ.items():
        if (
            _SECRET_NAME.search(name) is not None
            and not value.startswith(("/", "~", "."))
            and "://" not in value
            and not any(char.isspace() for char in value)
            and not (value.isalpha() and len(value) < 16)
        ):
            yield value
        yield from _URL_PASSWORD.findall(value)


def _is_allowed(name: str) -> bool:
    return name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
