/** A described request of which tests say only what they are about. */
import type { DescribedRequest } from '../../protocols/messages/described-request.ts'

/** A GET request in plain text by nobody that is known. */
export const describedRequest: DescribedRequest = {
  ...{ protocol: 'http', method: 'GET', host: '', path: '/', headers: {} },
  ...{ sourceIp: '', remoteIp: '', destinationIp: '', destinationPort: 0, sni: '' },
  ...{ peer: undefined, claims: undefined, metadata: {} },
}
