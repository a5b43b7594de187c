/** Where the files of the configuration of injection are (docs/injection.md, N1): known without loading what reads them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The directory of the files, `config` and `values`. */
export const injectorDirectory = './var/lib/mesh/inject'

/** Whether there is a configuration in files. */
export const hasInjectorFiles = (): boolean => existsSync(join(injectorDirectory, 'config'))
