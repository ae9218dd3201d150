"""What a build takes for a sign of where its packages came from."""

import re

import pytest

from deploy.build_images import traces_of


def shows(url: str, text: str) -> bool:
    return any(re.search(pattern, text) for pattern in traces_of(url))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://packages.example.com/simple", "index-url = https://packages.example.com/simple"),
        ("http://proxy:3128", "Acquire::http::Proxy proxy:3128"),
        ("http://proxy:3128", "http://proxy/debian"),
        ("http://us:pass@proxy", "http://us:pass@proxy/debian"),
    ],
)
def test_where_packages_came_from_is_found(url: str, text: str) -> None:
    assert shows(url, text)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://localhost:3141/index", "listens on http://localhost:3141"),
        ("http://us:pass@mirror.debian.org/debian", "http://mirror.debian.org/debian"),
        ("http://proxy:3128", "proxies = {'http': 'http://proxy.example.com'}; the proxy: a word"),
    ],
)
def test_what_stands_in_packages_is_spared(url: str, text: str) -> None:
    assert not shows(url, text)
