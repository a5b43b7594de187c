/** Shapes of hosts, ports and addresses that several kinds use. */
import { canonicalAddress, isIp, isIpOrCidr } from '../addresses.ts'
import { integer, list, map, type Read, type Report, record, required, type Shape, text } from '../shape.ts'

/** The maximum of an unsigned 32-bit integer. */
export const largestUint32 = 4_294_967_295

/** A port number. */
export const port = integer(1, 65_535)

/**
 * A map whose keys are names of labels, annotations or metadata. Mesh-owned names are converted to the mesh form, so that selectors and
 * labels match whichever form they are written in.
 */
export function labelsOf(item: Shape<string>): Shape<Record<string, string>> {
  const { form, read } = map(item)
  return {
    form,
    read(value, path, report) {
      const given = read(value, path, report)
      return given && (report.names?.canonicalKeys(given) ?? given)
    },
  }
}

/** Labels of workloads. */
export const labels = labelsOf(text({ max: 1024 }))

/** Tells the labels that cannot select workloads, at the path of the labels. */
export function checkSelector(given: Readonly<Record<string, string>>, path: string, { faults }: Report): void {
  for (const [key, label] of Object.entries(given)) {
    const at = `${path}[${key.slice(0, 100)}]`
    if (key === '') faults.push({ path: at, reason: 'a label needs a name' })
    else if (key.includes('*') || label.includes('*')) faults.push({ path: at, reason: 'wildcards are not allowed here' })
  }
}

/** Labels by which workloads are selected. */
export const selectorLabels: Shape<Record<string, string>> = {
  form: labels.form,
  read(value, path, report) {
    const given = labels.read(value, path, report)
    if (given) checkSelector(given, path, report)
    return given
  },
}

/** A host name, a wildcard, or an IP address. */
export const host = text({ max: 253, pattern: /^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+)$/, what: 'a host name' })

/** Addresses and CIDRs to match. */
export const subnets = list(
  text({
    check: (value) => (isIpOrCidr(value) ? undefined : `${JSON.stringify(value.slice(0, 100))} is not an IP address or CIDR`),
    examples: ['10.0.0.0/8', '::/0', '1.2.3.4'],
  }),
)

const writtenIp = text({
  check: (value) => (value === '' || isIp(value) ? undefined : `${JSON.stringify(value.slice(0, 100))} is not an IP address`),
  examples: ['0.0.0.0', '::', '10.1.2.3', ''],
})

/** An IP address, returned in canonical form, or empty text. */
export const ip: Shape<string> = {
  form: writtenIp.form,
  read(value, path, report) {
    const given = writtenIp.read(value, path, report)
    return given === undefined ? undefined : canonicalAddress(given)
  },
}

/** A reference to a port of a service. */
export const portSelector = record({ number: required(port) })

/** A destination of requests: a host, a subset of it, and a port. */
export const destination = record({ host: required(host), subset: text({ max: 253 }), port: portSelector })

export type Destination = Read<typeof destination>
