"""Prints what maxminddb finds in the file of the first argument of each address on stdin."""
import ipaddress
import json
import sys

import maxminddb


def first(record, *paths):
    """Returns the first value that one of the paths leads to, as text or number; else None."""
    for path in paths:
        value = record
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if value not in (None, ""):
            return value
    return None


with maxminddb.open_database(sys.argv[1]) as database:
    for line in sys.stdin:
        address = line.strip()
        record, bits = database.get_with_prefix_len(address)
        record = record or {}
        number = first(record, "autonomous_system_number")
        latitude = first(record, "location.latitude", "latitude")
        longitude = first(record, "location.longitude", "longitude")
        print(json.dumps({
            "countryCode": first(record, "country.iso_code", "country_code"),
            "city": first(record, "city.names.en", "city"),
            "lat": latitude,
            "lon": longitude,
            "asn": number,
            "prefix": str(ipaddress.ip_network(f"{address}/{bits}", strict=False)),
        }))
