"""The REST interface: parses, authorises and answers; decisions are the domain's."""
