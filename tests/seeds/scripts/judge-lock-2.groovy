if (ctx._source.lock_type == 'exclusive') { assert false }; ctx._source.lock_count++
