/** Certificates made at run time: Node can read certificates and not make them, and certificates in files would expire. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

export interface Certificate {
  key: string;
  cert: string;
}

interface Wanted {
  name: string;
  /** The period of validity. */
  from?: Date;
  to?: Date;
}

const DAY_MS = 86_400_000;

/** A certificate authority that no client trusts yet, and the certificates that it issues. */
export class Authority {
  readonly #name: string;
  readonly #keys = keyPair();
  readonly certificate: string;

  constructor(name = 'An authority of the tests') {
    this.#name = name;
    this.certificate = pem('CERTIFICATE', certify({ name }, this.#keys.publicKey, name, this.#keys.privateKey, [CA]));
  }

  issue(wanted: Wanted): Certificate {
    const { publicKey, privateKey } = keyPair();
    const der = certify(wanted, publicKey, this.#name, this.#keys.privateKey, [alternativeName(wanted.name)]);
    return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, cert: pem('CERTIFICATE', der) };
  }
}

/** A self-signed certificate. */
export function selfSigned(wanted: Wanted): Certificate {
  const { publicKey, privateKey } = keyPair();
  const der = certify(wanted, publicKey, wanted.name, privateKey, [alternativeName(wanted.name)]);
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, cert: pem('CERTIFICATE', der) };
}

const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

// ---- X.509 (RFC 5280, 4.1) in DER, as far as it is needed

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const lengthBytes = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content]);
}
const sequence = (...parts: Buffer[]) => der(0x30, ...parts);
const set = (...parts: Buffer[]) => der(0x31, ...parts);
const identifier = (hex: string) => der(0x06, Buffer.from(hex, 'hex'));
const octets = (content: Buffer) => der(0x04, content);
const text = (value: string) => der(0x0c, Buffer.from(value));
const TRUE = der(0x01, Buffer.from([255]));
const time = (date: Date) => der(0x18, Buffer.from(date.toISOString().replace(/[-:T]|\.\d+/g, '')));

const ECDSA_WITH_SHA256 = sequence(identifier('2a8648ce3d040302'));
const CA = sequence(identifier('551d13'), TRUE, octets(sequence(TRUE)));
const alternativeName = (dnsName: string) =>
  sequence(identifier('551d11'), octets(sequence(der(0x82, Buffer.from(dnsName)))));
const commonName = (name: string) => sequence(set(sequence(identifier('550403'), text(name))));

function certify(
  { name, from = new Date(Date.now() - DAY_MS), to = new Date(Date.now() + DAY_MS) }: Wanted,
  publicKey: KeyObject,
  issuer: string,
  issuerKey: KeyObject,
  extensions: Buffer[],
): Buffer {
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])), // serial number
    ECDSA_WITH_SHA256,
    commonName(issuer),
    sequence(time(from), time(to)),
    commonName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  return sequence(body, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0]), sign('sha256', body, issuerKey)));
}

const pem = (label: string, content: Buffer) =>
  `-----BEGIN ${label}-----\n${content.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END ${label}-----\n`;
