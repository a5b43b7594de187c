import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { expect } from 'chai'
import { actor as xdsWriter } from '../../actors/discovery/xds-writer/xds-writer.ts'
import type { ActorDefinition } from '../../actors/runtime/actor.ts'
import { hostActorHere } from '../../actors/runtime/host.ts'
import { Link } from '../../actors/runtime/link.ts'
import type { Control, Report } from '../../protocols/messages/envelope.ts'
import type { WriterCommand } from '../../protocols/messages/push.ts'
import { readFeatures } from '../../src/config/features.ts'
import { permitWords } from '../../src/push/pacing/permits.ts'
import { proxySlotWords } from '../../src/push/pacing/proxy-slots.ts'
import { knownAddressWords } from '../../src/transport/known-addresses.ts'
import { until } from '../harness/until.ts'

const off = { fallback: 'none', scopes: {} } as const
const log = { output: off, stackTrace: off, callers: [], asJson: false, targets: [], rotate: undefined }

/** A host as its supervisor sees it. */
function host<Config, Message>(definition: ActorDefinition<Config, Message>, config: Config) {
  const { port1, port2 } = new MessageChannel()
  const reports: Report[] = []
  port1.on('message', (report: Report) => reports.push(report))
  hostActorHere(definition as never, port2, { name: definition.kind, config, log })
  const send = (control: Control, transfer: MessagePort[] = []) => port1.postMessage(control, transfer)
  return {
    reports,
    send,
    stop: () => port1.close(),
    /** Links the host to a peer. Returns the peer's end and a function that delivers the other end. */
    peer(name: string, incarnation: number) {
      const channel = new MessageChannel()
      const link = new Link({ peer: definition.kind, incarnation, port: channel.port1, received: () => {}, closed: () => {} })
      return { link, arrive: () => send({ type: 'Link', peer: name, incarnation, port: channel.port2 }, [channel.port2]) }
    },
  }
}

describe('the host of an XDS writer', () => {
  it('delivers no push of a dead push queue, and keeps the new link when the old port closes', async () => {
    const { features } = readFeatures({})
    const connections = { keepaliveInterval: 1e4, keepaliveTimeout: 1e4, maxConnectionAge: 1e9 }
    const parts = {
      plain: { host: '127.0.0.1', port: 0 },
      secure: undefined,
      statusOnLoopback: true,
      versionKey: 'key',
      tokenRules: [],
      ...{ reviewsTokens: false, followsClusters: false },
      writers: 1,
      index: 0,
      connections,
    }
    const writer = host(xdsWriter, {
      features,
      permits: permitWords(1),
      proxySlots: proxySlotWords(1),
      knownAddresses: knownAddressWords(),
      ...parts,
    })
    /** A push with a resource in a slab. From a queue that numbers its slabs differently it would end the writer. */
    const push = (slab: number, withSlab: boolean): WriterCommand => ({
      type: 'PublishPush',
      push: { id: 1, startedAt: 0, reasons: [], digest: '' },
      whole: withSlab,
      slabs: withSlab ? [{ id: slab, bytes: new SharedArrayBuffer(8) }] : [],
      retiredSlabs: [],
      groups: [
        {
          group: `g${slab}`,
          base: 0,
          sequence: 1,
          version: '0'.repeat(32),
          changed: [{ name: 'a', version: '1', slices: [slab, 0, 8] }],
          removed: [],
        },
      ],
      retiredGroups: [],
      manifests: [],
      retiredClasses: [],
      assignments: [],
    })
    const taken = (link: Link) => {
      const messages: unknown[] = []
      for (let entry = link.take(); entry; entry = link.take()) if (Array.isArray(entry)) messages.push((entry[1] as { type: string }).type)
      return messages
    }
    const old = writer.peer('push-queue', 1)
    const next = writer.peer('push-queue', 2)
    old.arrive()
    old.link.tell(push(7, true))
    let answers: unknown[] = []
    await until('the first push to be taken', () => (answers = answers.concat(taken(old.link))).includes('PushApplied'))
    // The new queue is linked while a push of the old one is in flight, and before the old port closes.
    next.arrive()
    old.link.tell(push(7, false))
    next.link.tell(push(1, true))
    old.link.tell(push(7, false))
    answers = []
    await until('the push of the new queue to be taken', () => (answers = answers.concat(taken(next.link))).includes('PushApplied'))
    expect(writer.reports.filter(({ type }) => type === 'Failed')).to.deep.equal([])
    // The old port closes late, and the new link stays.
    old.link.close()
    next.link.tell(push(1, false))
    answers = []
    await until('another push to be taken', () => (answers = answers.concat(taken(next.link))).includes('PushApplied'))
    expect(writer.reports.filter(({ type }) => type === 'Failed')).to.deep.equal([])
    writer.stop()
  })
})
