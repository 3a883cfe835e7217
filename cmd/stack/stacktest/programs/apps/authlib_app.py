"""Signs in with Authlib: prints the address for the browser, reads the one that it came back to."""
import os

import requests
from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oidc.core import CodeIDToken

ISSUER, BASE = os.environ["ISSUER"], os.environ["BASE"]
CLIENT_ID, CLIENT_SECRET = os.environ["CLIENT_ID"], os.environ["CLIENT_SECRET"]

found = requests.get(ISSUER + "/.well-known/openid-configuration", timeout=60).json()
session = OAuth2Session(
    CLIENT_ID, CLIENT_SECRET, scope="openid email offline_access",
    redirect_uri=BASE + "/callback", code_challenge_method="S256")
nonce, verifier = generate_token(32), generate_token(48)
address, state = session.create_authorization_url(
    found["authorization_endpoint"], nonce=nonce, code_verifier=verifier)

print(address, flush=True)
back = input()

token = session.fetch_token(
    found["token_endpoint"], authorization_response=back, state=state, code_verifier=verifier)
keys = JsonWebKey.import_key_set(requests.get(found["jwks_uri"], timeout=60).json())
claims = jwt.decode(
    token["id_token"], keys, claims_cls=CodeIDToken,
    claims_options={"iss": {"value": ISSUER}, "aud": {"value": CLIENT_ID}},
    claims_params={
        "nonce": nonce, "client_id": CLIENT_ID, "access_token": token["access_token"]})
claims.validate()

session.refresh_token(found["token_endpoint"])
print("ok", session.get(found["userinfo_endpoint"]).json()["email"], claims["sub"], flush=True)
