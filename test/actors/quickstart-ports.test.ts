/** The ports of the quickstart. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { choosePorts, copyExample, takenLine } from '../../actors/quickstart/example-files.ts'
import { freePorts } from '../../bench/ports.ts'

describe('the ports of the quickstart', () => {
  it('begin at the one that is asked for, without those that are taken', async () => {
    const first = await freePorts(40)
    const taken = createServer().listen(first + 1, '127.0.0.1')
    try {
      const { ports } = await choosePorts(first)
      expect([ports.gateway, ...Object.values(ports)])
        .to.include(first)
        .and.not.include(first + 1)
    } finally {
      taken.close()
    }
  })

  it('are in the command that starts discovery by hand, where they are others than its defaults', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'mesh-quickstart-'))
    const commandWith = async (ports: readonly (readonly [number, number])[]) => {
      await copyExample(directory, new Map(ports))
      return readFileSync(join(directory, 'README.md'), 'utf8').match(/^npx pilot-discovery discovery .*$/m)?.[0]
    }
    const command = "npx pilot-discovery discovery --registries '' --configDir mesh"
    try {
      expect(await commandWith([[15_010, 15_010]])).to.equal(command)
      expect(
        await commandWith([
          [15_010, 20_001],
          [8080, 20_000],
        ]),
      ).to.equal(`${command} --grpcAddr :20001 --httpAddr :20000`)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  it('that are taken are told in one line', () => {
    const replaced = new Map([
      [8000, 20_000],
      [8080, 20_003],
      [15_010, 15_010],
    ])
    const line = (ports: string) =>
      `Ports that are taken, and those used in their place: ${ports}; the addresses below, and in its files, are those that it has.`
    expect(takenLine({ taken: [8000, 8080], replaced })).to.equal(line('8000 (20000), 8080 (20003)'))
    const many = Array.from({ length: 22 }, (_, at) => 9000 + at)
    const others = new Map(many.map((port) => [port, port + 11_000]))
    expect(takenLine({ taken: many, replaced: others })).to.equal(line('9000 (20000), 9001 (20001), 9002 (20002) and 19 more'))
  })
})
