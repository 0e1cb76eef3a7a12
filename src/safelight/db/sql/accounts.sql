-- name: insert_account!
-- A new, empty account.
INSERT INTO accounts (id, name) VALUES (:id, :name);

-- name: find_account^
-- An account by its name.
SELECT id FROM accounts WHERE name = :name;

-- name: list_accounts
-- Every account with its balance, oldest first.
SELECT id, name, available, held, open_tasks, created_at FROM accounts ORDER BY id;

-- name: insert_key!
-- A new key; only the keyed hash of its secret is kept.
INSERT INTO api_keys (id, account_id, name, secret_hash) VALUES (:id, :account_id, :name, :secret_hash);

-- name: read_key^
-- Whose key this is, and whether it still counts.
SELECT account_id, secret_hash, revoked_at FROM api_keys WHERE id = :id;

-- name: revoke_key^
-- End a key; its first end is the one that counts.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_now()) WHERE id = :id RETURNING revoked_at;

-- name: ended_keys
-- Which of these keys count no more.
SELECT wanted.id FROM unnest(:ids::text[]) AS wanted (id)
LEFT JOIN api_keys ON api_keys.id = wanted.id AND api_keys.revoked_at IS NULL
WHERE api_keys.id IS NULL;

-- name: list_keys
-- Keys of one account, or of all, without anything secret.
SELECT api_keys.id, api_keys.account_id, accounts.name AS account_name, api_keys.name, api_keys.created_at,
       api_keys.revoked_at
FROM api_keys JOIN accounts ON accounts.id = api_keys.account_id
WHERE :account_id::uuid IS NULL OR api_keys.account_id = :account_id
ORDER BY api_keys.created_at, api_keys.id;
