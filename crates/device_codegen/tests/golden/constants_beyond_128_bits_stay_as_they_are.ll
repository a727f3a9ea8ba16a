; Which number a constant of 128 bits is depends on its type: 2^128 - 1 is -1 as an i128, and positive as an i256.

define void @kernel(ptr %out, i128 %a) section ".nvvm.kernel" {
start:
  %wide = zext i128 %a to i256
  %ones = mul nuw i256 %wide, 340282366920938463463374607431768211455
  %more = add i256 %ones, 680564733841876926926749214863536422912
  %less = add i256 %more, -680564733841876926926749214863536422912
  %high = lshr i256 %less, 128
  %result = trunc i256 %high to i128
  %narrow = xor i128 %result, 340282366920938463463374607431768211455
  store i128 %narrow, ptr %out, align 16
  ret void
}
