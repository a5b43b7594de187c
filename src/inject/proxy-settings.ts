/** Reads the settings of the proxy that the annotation of a pod has (docs/injection.md, N4). */
import { type GivenProxyConfig, proxyConfigShape } from '../config/proxy-config.ts'
import type { Fault, Report } from '../config/shape.ts'
import { readDocuments } from '../config/yaml-documents.ts'

/** The most characters of the settings. */
const longest = 16_384

/** The settings, with the fields that are unknown or have no effect; or the reason why they cannot be used. */
export type ProxySettings = { readonly given: GivenProxyConfig; readonly remarks: readonly Fault[] } | { readonly fault: string }

/** Reads settings from the text of an annotation. */
export function readProxySettings(text: string): ProxySettings {
  if (text.length > longest) return { fault: `is longer than ${longest} characters` }
  const [document = { value: {} }, another] = readDocuments(text)
  if (another) return { fault: 'holds more than one document' }
  if ('error' in document) return { fault: document.error }
  const report: Report = { faults: [], warnings: [] }
  const given = proxyConfigShape.read(document.value ?? {}, '', report)
  if (!given || report.faults.length > 0) return { fault: report.faults.map(fieldText).join('; ') }
  return { given, remarks: report.warnings }
}

/** A fault of a field for a message. */
export const fieldText = ({ path, reason }: Fault): string => (path === '' ? reason : `field ${path}: ${reason}`)
