// passport-openidconnect: the strategy of Passport. It has no discovery, refresh or logout. Unless
// skipUserProfile is false it reads the profile from the id_token alone.
import express from 'express'
import session from 'express-session'
import passport from 'passport'
import Strategy from 'passport-openidconnect'
import { CLIENT_ID, CLIENT_SECRET, ISSUER, base, listen, show } from './app.mjs'

const discovered = await fetch(`${ISSUER}/.well-known/openid-configuration`)
const found = await discovered.json()
const app = express()
app.use(session({ secret: 'a secret', resave: false, saveUninitialized: false, name: 'passport' }))
app.use(passport.session())
passport.serializeUser((user, done) => done(null, user))
passport.deserializeUser((user, done) => done(null, user))
passport.use(new Strategy({
  issuer: ISSUER, authorizationURL: found.authorization_endpoint,
  tokenURL: found.token_endpoint, userInfoURL: found.userinfo_endpoint,
  clientID: CLIENT_ID, clientSecret: CLIENT_SECRET, callbackURL: `${base}/callback`,
  scope: 'profile email', skipUserProfile: false,
}, (issuer, profile, done) => done(null, { issuer, profile })))
app.get('/login', passport.authenticate('openidconnect'))
app.get('/callback', passport.authenticate('openidconnect', { successRedirect: '/', failWithError: true }))
app.get('/', (request, response) => show(response, { signedIn: Boolean(request.user), ...request.user }))
listen(app)
