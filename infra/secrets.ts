// Names every secret. Values are set by `sst secret set` and never stand in this repository.

/** Root keys as `version:base64url(32 bytes)`, separated by commas; add one to rotate, keep the old ones. */
export const rootKeys = new sst.Secret('RootKeys')

/** SHA-256 (hex) of the operator's key, which makes tenants. */
export const operatorKeySha256 = new sst.Secret('OperatorKeySha256')
