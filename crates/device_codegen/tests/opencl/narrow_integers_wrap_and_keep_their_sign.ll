; run 1 groups of 1
; with 200 100 0xfff0 3 0x80000000 33
; gives 200 100 0xfff0 3 0x80000000 33 44 32736 0xfffffff8 0xf0000000 0xfffffff9 0 248 1
define void @narrow(ptr %out) section ".nvvm.kernel" {
start:
  %p1 = getelementptr inbounds i32, ptr %out, i64 1
  %p2 = getelementptr inbounds i32, ptr %out, i64 2
  %p3 = getelementptr inbounds i32, ptr %out, i64 3
  %p4 = getelementptr inbounds i32, ptr %out, i64 4
  %a32 = load i32, ptr %out, align 4
  %b32 = load i32, ptr %p1, align 4
  %c32 = load i32, ptr %p2, align 4
  %d32 = load i32, ptr %p3, align 4
  %e = load i32, ptr %p4, align 4
  %a = trunc i32 %a32 to i8
  %b = trunc i32 %b32 to i8
  %c = trunc i32 %c32 to i16
  %d = trunc i32 %d32 to i16
  ; 200 + 100 = 300 = 44 of 8 bits
  %sum = add i8 %a, %b
  %sum.wide = zext i8 %sum to i32
  %q0 = getelementptr inbounds i32, ptr %out, i64 6
  store i32 %sum.wide, ptr %q0, align 4
  ; -16 / 2 of 16 bits without sign: 0xfff0 >> 1 = 32760, less 24
  %half = lshr i16 %c, 1
  %less = sub i16 %half, 24
  %half.wide = zext i16 %less to i32
  %q1 = getelementptr inbounds i32, ptr %out, i64 7
  store i32 %half.wide, ptr %q1, align 4
  ; with sign: -8
  %shifted = ashr i16 %c, 1
  %shifted.wide = sext i16 %shifted to i32
  %q2 = getelementptr inbounds i32, ptr %out, i64 8
  store i32 %shifted.wide, ptr %q2, align 4
  %far = ashr i32 %e, 3
  %q3 = getelementptr inbounds i32, ptr %out, i64 9
  store i32 %far, ptr %q3, align 4
  ; -56 / 8 = -7, which 200 / 8 = 25 is not
  %quotient = sdiv i8 %a, 8
  %quotient.wide = sext i8 %quotient to i32
  %q4 = getelementptr inbounds i32, ptr %out, i64 10
  store i32 %quotient.wide, ptr %q4, align 4
  ; 0xfff0 * 0xfff0 * ... is greater than an int: only 16 bits count, and -16 * -4096 is 65536
  %product = mul i16 %c, -4096
  %product.wide = zext i16 %product to i32
  %q5 = getelementptr inbounds i32, ptr %out, i64 11
  store i32 %product.wide, ptr %q5, align 4
  %up = shl i8 %a, 3
  %up.2 = or i8 %up, -8
  %up.wide = zext i8 %up.2 to i32
  %q6 = getelementptr inbounds i32, ptr %out, i64 12
  store i32 %up.wide, ptr %q6, align 4
  ; -16 < 3 with a sign
  %less.than = icmp slt i16 %c, %d
  %truth = zext i1 %less.than to i32
  %q7 = getelementptr inbounds i32, ptr %out, i64 13
  store i32 %truth, ptr %q7, align 4
  ret void
}
