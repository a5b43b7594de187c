import { expect } from 'chai'
import type { Connection } from '../../actors/discovery/xds-writer/connection.ts'
import { connectionAnswers } from '../../actors/discovery/xds-writer/connection-debug.ts'
import type { SessionParts } from '../../src/xds/stream/session.ts'
import { endpointType } from '../../src/xds/type-urls.ts'

describe('debug answers of a writer', () => {
  const names = new Set(Array.from({ length: 5000 }, (_, index) => `nobody-knows-${index}`))
  const watch = { typeUrl: endpointType, nonce: 'n', nonceAcked: 'n', version: 'v', subscription: { wildcard: false, names } }
  const session = { delta: true, classId: 'c', versionOf: () => 'v', missingSecrets: () => [], watches: new Map([[endpointType, watch]]) }
  const connection = { id: 'one', connectedAt: 0, stream: { peer: '127.0.0.1:1' }, session, rejections: [] } as unknown as Connection
  const parts = { catalog: { typeState: () => ({ version: 'v' }) } } as unknown as SessionParts
  const answers = connectionAnswers(new Map([['one', connection]]), parts, () => '')

  it('list subscribed names in the watches only, not with the connections', () => {
    expect(answers.watches()[0]?.watches[endpointType]).to.have.length(5000)
    expect(JSON.stringify(answers.connections())).not.to.contain('nobody-knows')
    expect(answers.connections()[0]?.types[0]).to.deep.include({ typeUrl: endpointType, current: true })
  })
})
