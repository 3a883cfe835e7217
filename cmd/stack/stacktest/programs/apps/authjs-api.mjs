// Auth.js for an app that calls an API: the access token is for the API, and Auth.js keeps it.
import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'
import { CLIENT_ID, CLIENT_SECRET, ISSUER, base, listen, show } from './app.mjs'

const config = {
  trustHost: true, secret: 'a secret of 32 characters or more',
  providers: [{
    id: 'gatehouse', name: 'gatehouse', type: 'oidc', issuer: ISSUER,
    clientId: CLIENT_ID, clientSecret: CLIENT_SECRET,
    authorization: { params: { scope: 'openid profile email notes:read', resource: `${base}/stock` } },
  }],
  callbacks: {
    jwt: ({ token, account, profile }) => (
      account ? { ...token, sub: profile.sub, access_token: account.access_token } : token),
    session: ({ session, token }) => ({
      ...session, user: { ...session.user, id: token.sub }, access_token: token.access_token,
    }),
  },
}
const app = express()
app.use('/auth', ExpressAuth(config))
app.get('/', async (request, response) => {
  const session = await getSession(request, config)
  show(response, { signedIn: Boolean(session), ...session, token: session?.access_token })
})
listen(app)
