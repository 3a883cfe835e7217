// A minimal browser, and helpers for the tests of all clients.
import assert from 'node:assert/strict'
import { webcrypto } from 'node:crypto'
import { text } from 'node:stream/consumers'

globalThis.crypto ??= webcrypto // missing in Node.js 18

// setup holds gatehouse's URL, the clients and the user. The test writes it to standard input.
export const setup = JSON.parse(await text(process.stdin))

const maxSteps = 10

// signIn opens the authorization URL as a user would: it signs in and allows the request. It returns
// the URL that the client's callback would get. cookies are those of the user's browser.
export async function signIn(url, cookies = new Map()) {
  const { left, page } = await browse(url, cookies)
  assert.ok(left, `no way back to the client from ${page}`)
  return left
}

// allowDevice opens the address that a device shows, signs in and allows it.
export async function allowDevice(url) {
  const { page } = await browse(url, new Map())
  assert.match(page, /Your device will be connected/)
}

// browse submits forms until the browser leaves gatehouse or reaches a page without one.
async function browse(url, cookies) {
  let request = { url: new URL(url) } // body is a form
  for (let step = 0; step < maxSteps; step++) {
    const response = await fetch(request.url, { method: request.body ? 'POST' : 'GET', body: request.body, redirect: 'manual', headers: { cookie: header(cookies) } })
    keep(cookies, response)
    const page = await response.text()
    const location = response.headers.get('location')
    if (location !== null) {
      const target = new URL(location, request.url)
      if (target.origin !== new URL(setup.url).origin) return { left: target }
      request = { url: target }
      continue
    }
    assert.equal(response.status, 200, `${request.url.pathname}: ${page}`)
    if (!page.includes('<form ')) return { page }
    request = fillIn(page, request.url)
  }
  assert.fail(`no end in ${maxSteps} steps`)
}

// fillIn submits the form of a page with the address base.
function fillIn(page, base) {
  const action = /<form method="post" action="([^"]*)"/.exec(page)
  assert.ok(action, `no form in ${page}`)
  const body = new URLSearchParams()
  for (const [, name, value] of page.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)) {
    body.set(name, unescape(value))
  }
  const code = /<input [^>]*name="user_code" [^>]*value="([^"]*)"/.exec(page)
  if (code) body.set('user_code', code[1])
  if (page.includes('name="email"')) {
    body.set('email', setup.user.email)
    body.set('password', setup.user.password)
  } else if (page.includes('name="code"')) {
    body.set('code', setup.user.code)
  } else if (page.includes('name="decision"')) {
    body.set('decision', 'allow')
  }
  return { url: new URL(unescape(action[1]), base), body }
}

function unescape(html) {
  return html.replace(/&#(\d+);/g, (_, n) => String.fromCodePoint(n)).replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}

// setCookies returns the Set-Cookie lines. In Debian's Node.js 18 fetch joins them with commas.
function setCookies(headers) {
  if (headers.getSetCookie) return headers.getSetCookie()
  const lines = headers.get('set-cookie')
  return lines === null ? [] : lines.split(/, (?=[^;,=]+=)/)
}

function keep(cookies, response) {
  for (const line of setCookies(response.headers)) {
    const [pair] = line.split(';')
    const at = pair.indexOf('=')
    cookies.set(pair.slice(0, at), pair.slice(at + 1))
  }
}

function header(cookies) {
  return [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
}

// profile requests the basic profile and returns the status and the e-mail address.
export async function profile(accessToken) {
  const response = await fetch(`${setup.url}/api/user`, { headers: { authorization: `Bearer ${accessToken}` } })
  const { email } = await response.json()
  return { status: response.status, email }
}

// assertWorks checks that the access token returns the user's profile.
export async function assertWorks(accessToken) {
  assert.deepEqual(await profile(accessToken), { status: 200, email: setup.user.email })
}

// assertRefused checks that the access token is refused.
export async function assertRefused(accessToken) {
  assert.deepEqual(await profile(accessToken), { status: 401, email: undefined })
}
