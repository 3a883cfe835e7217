// Auth.js with a provider of type oidc. It reads the profile from the id_token alone.
import { ExpressAuth, getSession } from '@auth/express'
import express from 'express'
import { CLIENT_ID, CLIENT_SECRET, ISSUER, listen, show } from './app.mjs'

const config = {
  trustHost: true, secret: 'a secret of 32 characters or more',
  providers: [{
    id: 'gatehouse', name: 'gatehouse', type: 'oidc', issuer: ISSUER,
    clientId: CLIENT_ID, clientSecret: CLIENT_SECRET,
  }],
  callbacks: {
    jwt: ({ token, profile }) => (profile ? { ...token, sub: profile.sub } : token),
    session: ({ session, token }) => ({ ...session, user: { ...session.user, id: token.sub } }),
  },
}
const app = express()
app.use('/auth', ExpressAuth(config))
app.get('/', async (request, response) => {
  const session = await getSession(request, config)
  show(response, { signedIn: Boolean(session), ...session })
})
listen(app)
