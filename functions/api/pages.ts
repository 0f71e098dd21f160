// Pages without a key: health, and the error table that every problem's `type` points into.
import { Hono } from 'hono'
import { html } from 'hono/html'
import { errorCodes, says, statusOf } from '../../shared/errors.ts'

export const pages = new Hono()
  .get('/health', c => c.json({ status: 'ok' }))
  .get('/docs/errors', c => {
    c.header('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'")
    c.header('X-Content-Type-Options', 'nosniff')
    return c.html(html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Rouse: errors</title>
<style>body{font:16px/1.5 system-ui;max-width:44rem;margin:2rem auto;padding:0 1rem}dt{font-family:monospace;margin-top:1rem}</style>
<h1>Errors</h1>
<p>Every refusal is a problem detail (RFC 9457) with one of these codes; <code>errors</code> names the wrong fields.</p>
<dl>${errorCodes.map(code => html`<dt id="${code}">${code} (HTTP ${statusOf(code)})</dt><dd>${says(code)}</dd>`)}</dl>
</html>`)
  })
