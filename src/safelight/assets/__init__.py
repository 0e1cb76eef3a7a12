"""Outside: where bytes live, how strangers' bytes are fetched, and how pictures are checked."""
