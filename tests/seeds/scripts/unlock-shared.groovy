if ( --ctx._source.lock_count == 0) { ctx.op = 'delete' }
