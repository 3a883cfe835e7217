"""Signs in with Authlib: prints the address for the browser, reads the one that it came back to."""
import os

import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oidc.core import CodeIDToken

issuer, client_id = os.environ["ISSUER"], os.environ["CLIENT_ID"]
found = requests.get(issuer + "/.well-known/openid-configuration", timeout=60).json()
session = OAuth2Session(
    client_id, os.environ["CLIENT_SECRET"], scope="openid email offline_access",
    redirect_uri=os.environ["CALLBACK"], code_challenge_method="S256")
verifier = "a-verifier-of-more-than-43-characters-1234567890"
address, state = session.create_authorization_url(
    found["authorization_endpoint"], nonce="n", code_verifier=verifier)
print(address, flush=True)
token = session.fetch_token(
    found["token_endpoint"], authorization_response=input(), state=state, code_verifier=verifier)
keys = JsonWebKey.import_key_set(requests.get(found["jwks_uri"], timeout=60).json())
claims = jwt.decode(
    token["id_token"], keys, claims_cls=CodeIDToken,
    claims_options={"iss": {"value": issuer}, "aud": {"value": client_id}},
    claims_params={"nonce": "n", "client_id": client_id, "access_token": token["access_token"]})
claims.validate()
session.refresh_token(found["token_endpoint"])
print("ok", session.get(found["userinfo_endpoint"]).json()["email"], flush=True)
