/** Certificates that the servers of a process present to their clients, and who is told of them. */

/** A certificate with its chain, and its private key, as PEM. */
export interface ServingCertificate {
  readonly cert: string
  readonly key: string
}

/** A file, and the flag that names it in messages. */
export interface NamedFile {
  readonly flag: string
  readonly path: string
}

/** Where a serving certificate is read from. */
export interface CertificateFiles {
  readonly cert: NamedFile
  readonly key: NamedFile
  readonly ca: NamedFile | undefined
}

/** Of the watcher of certificate files. */
export interface CertificateWatcherConfig {
  readonly files: CertificateFiles
}

/** To writers: connections that come from now on are served with this certificate. Connections that are open stay as they are. */
export type CertificateEvent = { readonly type: 'CertificateChanged'; readonly certificate: ServingCertificate }
