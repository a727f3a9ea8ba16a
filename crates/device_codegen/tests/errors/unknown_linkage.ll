@A = common global i32 0, align 4
