// What all apps share: their configuration and the page that shows who is signed in.
export const { ISSUER, CLIENT_ID, CLIENT_SECRET, PORT } = process.env
export const base = `http://127.0.0.1:${PORT}`

// listen serves app and prints a line when it is ready.
export function listen(app) {
  app.use((error, _request, response, _next) => {
    console.error(error)
    response.status(500).type('text').send(`app error: ${error.message} ${error.cause ?? ''}`)
  })
  app.listen(Number(PORT), '127.0.0.1', () => console.log('ready'))
}

// show responds with the state of the app as text that a test can read.
export function show(response, state) {
  response.type('html').send(`<!doctype html><title>App</title><pre id="state">${JSON.stringify(state).replaceAll('<', '\\u003c')}</pre>`)
}
