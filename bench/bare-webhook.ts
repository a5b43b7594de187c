/**
 * The least that a webhook does: `node:https`, a review that is parsed, and an answer with a patch of the usual size. Prints `listening` once it
 * is reached. Arguments: the port, the files of certificate and key.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'

const [port = '', cert = '', key = ''] = process.argv.slice(2)
const patch = Buffer.alloc(7000, 'x').toString('base64')

createServer({ cert: readFileSync(cert), key: readFileSync(key), keepAliveTimeout: 120_000 }, (request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const { apiVersion, request: asked } = JSON.parse(Buffer.concat(parts).toString('utf8'))
    const answer = { apiVersion, kind: 'AdmissionReview', response: { uid: asked.uid, allowed: true, patchType: 'JSONPatch', patch } }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer))
  })
}).listen(Number(port), '127.0.0.1', () => process.stdout.write('listening\n'))
