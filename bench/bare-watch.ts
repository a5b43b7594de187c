/**
 * Measures the least cost of following a cluster: a process that lists and watches kinds of objects at an API server over one HTTP/2 connection, parses
 * each event and keeps nothing. Arguments: the address, the file with the access (JSON), the paths. It writes a line with the number of objects
 * when all lists have ended, and the time of the first event of an EndpointSlice whose text has the word of its last line of input.
 */
import { readFileSync } from 'node:fs'
import { connect } from 'node:http2'

const [server = '', file = '', ...paths] = process.argv.slice(2)
const { ca, cert, key } = JSON.parse(readFileSync(file, 'utf8')) as { ca: string; cert: string; key: string }
const session = connect(server, { ca, cert, key, settings: { initialWindowSize: 1_048_576 } })
session.on('connect', () => session.setLocalWindowSize(4 * 1_048_576))
let [open, objects] = [paths.length, 0]
let word = ''
process.stdin.setEncoding('utf8').on('data', (text: string) => (word = text.trim()))
for (const path of paths) {
  const query = 'watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=3600'
  const stream = session.request({ ':path': `${path}?${query}`, accept: 'application/json' })
  let rest = ''
  let isListed = false
  const isSlices = path.endsWith('/endpointslices')
  stream.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const { type, object } = JSON.parse(line) as { type: string; object: { metadata: { annotations?: Record<string, string> } } }
      if (isSlices && word !== '' && line.includes(word)) {
        console.log(`seen ${word} ${Date.now()}`)
        word = ''
      }
      if (type !== 'BOOKMARK') objects++
      else if (!isListed && object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true') {
        isListed = true
        if (--open === 0) console.log(`listed ${objects} ${process.cpuUsage().user + process.cpuUsage().system}`)
      }
    }
  })
}
