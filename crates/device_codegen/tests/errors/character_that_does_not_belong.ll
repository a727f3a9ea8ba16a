@A = internal constant i32 0 ~
