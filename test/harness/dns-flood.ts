/** A program that floods a DNS server with queries over UDP from one socket: `node dns-flood.ts <port> <queries> <milliseconds>`. */
import { createSocket } from 'node:dgram'
import { dnsQuery } from './dns-messages.ts'

const [port = 0, queries = 0, ms = 1] = process.argv.slice(2).map(Number)
const socket = createSocket('udp4').on('message', () => undefined)
const started = performance.now()
let sent = 0

socket.connect(port, '127.0.0.1', function more(): void {
  const due = Math.min(queries, (queries * (performance.now() - started)) / ms)
  for (; sent < due; sent++) socket.send(dnsQuery({ name: `a${sent}.example.com`, id: sent & 0xffff }), () => undefined)
  if (sent < queries) setTimeout(more, 2)
  else setTimeout(() => process.exit(), 5000)
})
