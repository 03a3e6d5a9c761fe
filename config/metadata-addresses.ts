/** Addresses at which clouds return the credentials of a machine to any process on it. Nothing is ever forwarded to them. */
import { BlockList, isIP, isIPv6 } from 'node:net';

const METADATA_ADDRESSES = new BlockList();
METADATA_ADDRESSES.addSubnet('169.254.0.0', 16);
METADATA_ADDRESSES.addSubnet('fe80::', 10, 'ipv6');
// 169.254.0.0/16 within IPv6, beside IPv4-mapped addresses, which a BlockList knows: NAT64, 6to4, translated, compatible.
METADATA_ADDRESSES.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');
METADATA_ADDRESSES.addSubnet('2002:a9fe::', 32, 'ipv6');
METADATA_ADDRESSES.addSubnet('::ffff:0:a9fe:0', 112, 'ipv6');
METADATA_ADDRESSES.addSubnet('::a9fe:0', 112, 'ipv6');
METADATA_ADDRESSES.addAddress('fd00:ec2::254', 'ipv6'); // Amazon
METADATA_ADDRESSES.addAddress('fd00:ec2::23', 'ipv6'); // Amazon, credentials of pods
METADATA_ADDRESSES.addAddress('168.63.129.16'); // Azure
METADATA_ADDRESSES.addAddress('fd20:ce::254', 'ipv6'); // Google
METADATA_ADDRESSES.addAddress('100.100.100.200'); // Alibaba
METADATA_ADDRESSES.addAddress('192.0.0.192'); // Oracle

const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'metadata.tencentyun.com',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** @param hostname as a URL has it: lower case, IPv4 in four decimals, IPv6 in brackets. */
export function isMetadataHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? METADATA_NAMES.has(host.replace(/\.$/, '')) : isMetadataAddress(host);
}

/** @param address IPv4, IPv6, or IPv4 within IPv6; a zone is allowed. */
export function isMetadataAddress(address: string): boolean {
  const [plain = ''] = address.split('%');
  return METADATA_ADDRESSES.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}
