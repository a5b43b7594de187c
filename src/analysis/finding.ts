/** What the analysis of configuration finds: something that is valid by itself and wrong, or without effect, beside what else there is. */

/** How serious a finding is: what is meant does not happen; it may not; for information. */
export type Level = 'error' | 'warning' | 'info'

/** The codes of findings with their names and levels (behaviour of discovery, section 7.3). Users suppress and search findings by them. */
export const codes = {
  IST0101: { name: 'ReferencedResourceNotFound', level: 'error' },
  IST0106: { name: 'SchemaValidationError', level: 'error' },
  IST0109: { name: 'ConflictingMeshGatewayVirtualServiceHosts', level: 'error' },
  IST0110: { name: 'ConflictingSidecarWorkloadSelectors', level: 'error' },
  IST0111: { name: 'MultipleSidecarsWithoutWorkloadSelectors', level: 'error' },
  IST0112: { name: 'VirtualServiceDestinationPortSelectorRequired', level: 'error' },
  IST0118: { name: 'PortNameIsNotUnderNamingConvention', level: 'info' },
  IST0127: { name: 'NoMatchingWorkloadsFound', level: 'warning' },
  IST0128: { name: 'NoServerCertificateVerificationDestinationLevel', level: 'error' },
  IST0129: { name: 'NoServerCertificateVerificationPortLevel', level: 'warning' },
  IST0130: { name: 'VirtualServiceUnreachableRule', level: 'warning' },
  IST0131: { name: 'VirtualServiceIneffectiveMatch', level: 'info' },
  IST0132: { name: 'VirtualServiceHostNotFoundInGateway', level: 'warning' },
  IST0133: { name: 'SchemaWarning', level: 'warning' },
  IST0134: { name: 'ServiceEntryAddressesRequired', level: 'warning' },
} as const satisfies Readonly<Record<string, { readonly name: string; readonly level: Level }>>

/** The code of a finding. */
export type Code = keyof typeof codes

/** One finding. */
export interface Finding {
  readonly code: Code
  /** The key of the object ({@link import('../config/kinds.ts').configKey}). */
  readonly object: string
  /** Where in the object, `spec.http[0].route[1].destination.host`; empty: the whole of it. */
  readonly path: string
  /** A sentence without its full stop: what is wrong, what follows, and what to do. */
  readonly message: string
}

/** Takes findings of one object. */
export type Tell = (code: Code, path: string, message: string) => void
