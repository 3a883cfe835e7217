// oidc-client-ts in a page that calls an API: the access token is for the API and userinfo.
import express from 'express'
import { CLIENT_ID, ISSUER, base, listen } from './app.mjs'

const page = `<!doctype html><title>App</title><pre id="state"></pre>
<button id="login">Login</button> <button id="refresh">Refresh</button> <button id="logout">Logout</button>
<script src="/oidc-client-ts.min.js"></script>
<script>
const ISSUER = ${JSON.stringify(ISSUER)}, CLIENT_ID = ${JSON.stringify(CLIENT_ID)}, base = location.origin
const manager = new oidc.UserManager({
  authority: ISSUER, client_id: CLIENT_ID,
  redirect_uri: base + '/callback', post_logout_redirect_uri: base + '/',
  scope: 'openid profile email offline_access notes:read', resource: base + '/prices',
  loadUserInfo: true, automaticSilentRenew: false,
  userStore: new oidc.WebStorageStateStore({ store: window.sessionStorage }),
})
const show = state => { document.getElementById('state').textContent = JSON.stringify(state) }
const failed = error => show({ error: String(error) })
const of = user => user ? { signedIn: true, claims: user.profile, refresh: Boolean(user.refresh_token), token: user.access_token } : { signedIn: false }
async function start() {
  if (location.pathname === '/callback') { await manager.signinCallback(); history.replaceState({}, '', '/') }
  show(of(await manager.getUser()))
}
document.getElementById('login').onclick = () => manager.signinRedirect().catch(failed)
document.getElementById('logout').onclick = () => manager.signoutRedirect().catch(failed)
document.getElementById('refresh').onclick = async () => {
  try {
    const before = (await manager.getUser()).access_token
    const user = await manager.signinSilent()
    show({ ...of(user), refreshed: user.access_token !== before })
  } catch (error) { failed(error) }
}
start().catch(failed)
</script>`
const app = express()
app.get('/oidc-client-ts.min.js', (_request, response) => response.sendFile('node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js', { root: import.meta.dirname }))
app.get(['/', '/callback'], (_request, response) => response.type('html').send(page))
listen(app)
