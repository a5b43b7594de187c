/** Certificates that the servers of a process present to their clients, and the messages about them. */

/** A certificate chain and its private key, as PEM. */
export interface ServingCertificate {
  readonly cert: string
  readonly key: string
}

/** A file, and the flag that named it, for messages. */
export interface NamedFile {
  readonly flag: string
  readonly path: string
}

/** The files of a serving certificate. */
export interface CertificateFiles {
  readonly cert: NamedFile
  readonly key: NamedFile
  readonly ca: NamedFile | undefined
}

/** Configuration of the watcher of certificate files. */
export interface CertificateWatcherConfig {
  readonly files: CertificateFiles
}

/** Sent to writers: new connections are served with this certificate. Open connections are not affected. */
export type CertificateEvent = { readonly type: 'CertificateChanged'; readonly certificate: ServingCertificate }
