/** One client floods the agent's DNS server over UDP, or keeps connections open, while others ask. */
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { OwnTime } from '../harness/own-time.ts'
import { CostRecorder } from '../harness/process-cost.ts'
import { until } from '../harness/until.ts'

const flood = fileURLToPath(new URL('../harness/dns-flood.ts', import.meta.url))

/** A query that is answered at once, whatever names are known: it has no question. */
const query = (id: number) => Buffer.from([id >> 8, id & 255, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])

describe("the agent's DNS server answers others while a client", () => {
  let agent: Agent
  let port = 0

  before(async () => {
    port = await freePort()
    agent = new Agent({ env: { MESH_META_DNS_CAPTURE: 'true', DNS_PROXY_ADDR: `127.0.0.1:${port}` } })
    await agent.start()
    await until('the DNS server', () => agent.output.includes('DNS on'))
  })
  after(() => agent.dispose())

  /** Asks over UDP without repeating, each time from a socket of its own, and returns how many answers came within a second of own time. */
  async function answered(times: number): Promise<number> {
    let answers = 0
    for (let id = 1; id <= times; id++) {
      const socket = createSocket('udp4')
      let isAnswered = false
      socket.on('message', () => (isAnswered = true))
      socket.send(query(id), port, '127.0.0.1')
      const watch = new OwnTime()
      await until('the answer, or a second', () => isAnswered || watch.ms() > 1000)
      socket.close()
      if (isAnswered) answers++
    }
    return answers
  }

  it('sends 20,000 queries in 0.4 s', async () => {
    const cost = new CostRecorder(agent.pid)
    const child = spawn(process.execPath, [flood, String(port), '20000', '400'], { stdio: ['ignore', 'ignore', 'inherit'] })
    try {
      await until('the flood', () => cost.descriptors > 60)
      const answers = await answered(20)
      const { mib, descriptors } = cost.stop()
      expect(answers).to.be.at.least(18)
      expect(mib).to.be.below(100)
      expect(descriptors).to.be.below(200)
    } finally {
      child.kill('SIGKILL')
    }
  })

  it('keeps 300 connections open', async () => {
    const held: Socket[] = []
    try {
      for (let index = 0; index < 300; index++) held.push(connect(port, '127.0.0.1').on('error', () => undefined))
      await until('the connections', () => held.every(({ connecting }) => !connecting))
      const watch = new OwnTime()
      const client = connect(port, '127.0.0.1', () => client.write(Buffer.concat([Buffer.of(0, 12), query(7)])))
      held.push(client.on('error', () => undefined))
      let isAnswered = false
      client.on('data', () => (isAnswered = true))
      await until('the answer', () => isAnswered)
      expect(watch.ms()).to.be.below(1000)
    } finally {
      for (const socket of held) socket.destroy()
    }
  })

  it('asks a great many queries on each of 100 connections', async () => {
    const held: Socket[] = []
    const many = Buffer.concat(Array.from({ length: 5000 }, (_, id) => Buffer.concat([Buffer.of(0, 12), query(id)])))
    try {
      for (let index = 0; index < 100; index++) held.push(connect(port, '127.0.0.1').on('error', () => undefined))
      for (const socket of held) socket.resume().write(many)
      expect(await answered(20)).to.be.at.least(18)
    } finally {
      for (const socket of held) socket.destroy()
    }
  })
})
