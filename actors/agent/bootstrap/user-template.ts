/** Makes the bootstrap from a user's template (docs/agent.md, B18). Imported only when a template is configured. */
import { renderTemplate } from '../../../src/bootstrap/go-template/execute.ts'
import type { PreparedSettings } from '../../../src/bootstrap/prepared.ts'
import type { BootstrapSettings } from '../../../src/bootstrap/settings.ts'
import { templateParameters } from '../../../src/bootstrap/template-parameters.ts'
import { readIfThere } from '../../runtime/bounded-file.ts'

/** Renders the template. Rejects with an Error that names the file, and the line of a fault in the template. */
export async function fromTemplate(file: string, settings: BootstrapSettings, { options, features, platform }: PreparedSettings): Promise<string> {
  const template = await readIfThere(file)
  if (template === undefined) throw new Error(`template of the bootstrap: ${file}: there is no such file`)
  const facts = { certificateProvider: features.PILOT_CERT_PROVIDER, stsPort: options.stsPort, project: platform.gcp_project ?? '' }
  try {
    return renderTemplate(template, templateParameters(settings, facts))
  } catch (error) {
    throw new Error(`template of the bootstrap: ${file}: ${(error as Error).message}`)
  }
}
