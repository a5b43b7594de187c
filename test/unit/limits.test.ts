/** The tables of docs/limits.md are whole: each row has a bound and a test of `test/chaos/`, and each listening port has a row. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { proxyFlags } from '../../src/cli/agent-flags.ts'
import { discoveryFlags, rootFlags } from '../../src/cli/discovery-flags.ts'
import { agentVariables } from '../../src/config/agent-features.ts'
import { variables } from '../../src/config/features.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const text = readFileSync(`${root}/docs/limits.md`, 'utf8')
/** The rows of all tables by their cells: subject, CPU, memory, descriptors, bound, tests. */
const rows = [...text.matchAll(/^\| (.*) \|$/gm)]
  .map(([, row = '']) => row.split(' | '))
  .filter(([subject = '']) => !/^(-+|Port|Fetch)$/.test(subject.trim()))
const subjects = rows.map(([subject]) => subject).join('\n')

/** The names in code quotes that look like a path or a name of a file in a cell. */
const quoted = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

describe('the table of limits', () => {
  it('has six cells in each row, none of which is empty', () => {
    expect(rows.length).to.be.above(20)
    for (const cells of rows) {
      expect(cells, cells[0]).to.have.length(6)
      for (const cell of cells) expect(cell.trim(), cells[0]).not.to.equal('')
    }
  })

  it('names for each row a place of its bound, and tests that exist, of which one is of test/chaos', () => {
    for (const [subject, , , , bound, measured] of rows) {
      const tests = quoted(measured)
      expect(
        tests.some((path) => path.startsWith('test/chaos/')),
        subject,
      ).to.equal(true)
      for (const path of [...tests, ...quoted(bound).filter((name) => name.includes('/'))]) expect(existsSync(`${root}/${path}`), path).to.equal(true)
      expect(quoted(bound), subject).not.to.have.length(0)
    }
  })

  it('has a row for each flag and variable by which a command listens', () => {
    /** A flag or variable that opens no port of these commands, although its name may sound so. */
    const opensNone = /(^ctrlz_address$|^proxyAdminPort$|^CA_ADDR$|^PROXY_|^GCE_|^ORCHESTRATOR_|_ADDRESSES$|^INSTANCE_)/
    const flags = Object.entries({ ...rootFlags, ...discoveryFlags, ...proxyFlags })
      .filter(([name, flag]) => /(Addr|Port|_port)$/.test(name) && !('notYet' in flag) && !opensNone.test(name))
      .map(([name]) => `--${name}`)
    const named = Object.keys({ ...variables, ...agentVariables }).filter((name) => /(_ADDR|_PORT|_SOCKET)$/.test(name) && !opensNone.test(name))
    expect(flags).to.include.members(['--grpcAddr', '--secureGRPCAddr', '--httpAddr', '--monitoringAddr', '--ctrlz_port', '--stsPort'])
    expect(named).to.include.members(['DNS_PROXY_ADDR', 'MESHD_ADMIN_SOCKET'])
    for (const name of [...flags, ...named, 'statusPort', 'etc/mesh/proxy/SDS', 'etc/mesh/proxy/XDS']) expect(subjects).to.include(name)
  })
})
