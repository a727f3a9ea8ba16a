@A = internal thread_local global [4 x i8] zeroinitializer, align 4
